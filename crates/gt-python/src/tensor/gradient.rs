//! Autograd attributes and methods of `Tensor`.

use gt::tape::{self, BackwardOptions};
use pyo3::prelude::*;

use super::{PyOperand, PyTensor};
use crate::error::IntoPython;
use crate::{session, source};

#[pymethods]
impl PyTensor {
    /// Whether operations on the tensor are recorded for gradients.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.0.requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, wanted: bool) -> PyResult<()> {
        self.0.set_requires_grad(wanted).py()
    }

    /// Set whether operations on the tensor are recorded for gradients, and return the tensor. Only
    /// floating and complex dtypes have gradients.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_(slf: &Bound<'_, Self>, requires_grad: bool) -> PyResult<Py<PyTensor>> {
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
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&Bound<'_, PyAny>>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<Vec<PyRef<'_, PyTensor>>>,
    ) -> PyResult<()> {
        session::ready(py, &self.0)?;
        source::note(py);
        let retain_graph = retain_graph.unwrap_or(create_graph);
        let options = BackwardOptions { retain_graph, create_graph };
        let gradient =
            gradient.map(|given| PyOperand::tensor(&self.0, given, "backward")).transpose()?;
        let root = [(&self.0, gradient.as_ref())];
        match inputs {
            None => tape::backward(&root, options).py(),
            Some(inputs) => {
                let inputs: Vec<_> = inputs.iter().map(|input| input.0.clone()).collect();
                tape::backward_to(&root, &inputs, options).py()
            }
        }
    }

    /// Return a tensor without history that shares this tensor's memory.
    fn detach(&self) -> PyTensor {
        PyTensor(self.0.detach())
    }
}
