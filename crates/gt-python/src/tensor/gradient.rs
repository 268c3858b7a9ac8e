//! Autograd attributes and methods of `Tensor`.

use gt::Tensor;
use gt::tape::{self, BackwardOptions};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use super::{PyOperand, PyTensor};
use crate::error::IntoPython;
use crate::{argument, session, source};

/// Returns the options of a backward pass that the function `call` starts.
pub fn options(
    call: &str,
    retain_graph: Option<&Bound<'_, PyAny>>,
    create_graph: Option<&Bound<'_, PyAny>>,
) -> PyResult<BackwardOptions> {
    let truth = |name, given: Option<&Bound<'_, PyAny>>| {
        given.map(|given| argument::truth(call, name, given)).transpose()
    };
    let create_graph = truth("create_graph", create_graph)?.unwrap_or(false);
    let retain_graph = truth("retain_graph", retain_graph)?.unwrap_or(create_graph);
    Ok(BackwardOptions { retain_graph, create_graph })
}

/// Returns the tensors of an argument, which is one or a sequence of them.
pub fn leaves(call: &str, name: &str, given: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    if let Ok(one) = given.cast::<PyTensor>() {
        return Ok(vec![one.get().0.clone()]);
    }
    let wrong = |of: &Bound<'_, PyAny>| {
        let text = argument::mismatch(call, name, "a tensor or a list of tensors", of);
        PyTypeError::new_err(text)
    };
    let items = given.try_iter().map_err(|_| wrong(given))?;
    let tensor = |item: Bound<'_, PyAny>| match item.cast::<PyTensor>() {
        Ok(tensor) => Ok(tensor.get().0.clone()),
        Err(_) => Err(wrong(&item)),
    };
    items.map(|item| tensor(item?)).collect()
}

#[pymethods]
impl PyTensor {
    /// Whether operations on the tensor are recorded for gradients.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.0.requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, wanted: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(wanted) = wanted.extract() else {
            let text = argument::mismatch("Tensor", "requires_grad", "a bool", wanted);
            return Err(PyRuntimeError::new_err(text));
        };
        self.0.set_requires_grad(wanted).py()
    }

    /// Set whether operations on the tensor are recorded for gradients, and return the tensor. Only
    /// floating and complex dtypes have gradients.
    #[pyo3(signature = (requires_grad=None), text_signature = "($self, requires_grad=True)")]
    fn requires_grad_(
        slf: &Bound<'_, Self>,
        requires_grad: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyTensor>> {
        let flag = |given| argument::flag("requires_grad_", "requires_grad", given);
        let requires_grad = requires_grad.map(flag).transpose()?.unwrap_or(true);
        slf.get().0.set_requires_grad(requires_grad).py()?;
        Ok(slf.clone().unbind())
    }

    /// Whether the tensor is not the result of a recorded operation.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.0.is_leaf()
    }

    /// The gradient accumulated by backward passes, or None.
    #[getter]
    fn grad(&self) -> Option<PyTensor> {
        self.0.grad().map(PyTensor)
    }

    #[setter]
    fn set_grad(&self, grad: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let grad = grad.map(|given| PyOperand::tensor(&self.0, given, "grad")).transpose()?;
        self.0.set_grad(grad).py()
    }

    /// Add the gradients of this tensor to the `grad` of all leaves that it depends on, or of
    /// `inputs`.
    ///
    /// `gradient` is the gradient of this tensor; without it, the tensor must have one element.
    #[pyo3(
        signature = (gradient=None, retain_graph=None, create_graph=None, inputs=None),
        text_signature = "($self, gradient=None, retain_graph=None, create_graph=False, inputs=None)"
    )]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&Bound<'_, PyAny>>,
        retain_graph: Option<&Bound<'_, PyAny>>,
        create_graph: Option<&Bound<'_, PyAny>>,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let options = options("backward", retain_graph, create_graph)?;
        let inputs = inputs.map(|given| leaves("backward", "inputs", given)).transpose()?;
        session::ready(py, &self.0)?;
        source::note(py);
        let gradient =
            gradient.map(|given| PyOperand::tensor(&self.0, given, "backward")).transpose()?;
        let root = [(&self.0, gradient.as_ref())];
        match inputs {
            None => tape::backward(&root, options).py(),
            Some(inputs) => tape::backward_to(&root, &inputs, options).py(),
        }
    }

    /// Return a tensor without history that shares this tensor's memory.
    fn detach(&self) -> PyTensor {
        PyTensor(self.0.detach())
    }
}
