//! Autograd on a tensor.

use gt::tape::{self, BackwardOptions};
use pyo3::prelude::*;

use super::PyTensor;
use crate::error::IntoPython;
use crate::{session, source};

#[pymethods]
impl PyTensor {
    /// Whether operations on it are recorded for gradients.
    #[getter]
    fn requires_grad(&self) -> bool {
        self.0.requires_grad()
    }

    #[setter]
    fn set_requires_grad(&self, wanted: bool) -> PyResult<()> {
        self.0.set_requires_grad(wanted).py()
    }

    /// Says whether operations on it are recorded; floats only.
    #[pyo3(signature = (requires_grad=true))]
    fn requires_grad_(slf: &Bound<'_, Self>, requires_grad: bool) -> PyResult<Py<PyTensor>> {
        slf.get().0.set_requires_grad(requires_grad).py()?;
        Ok(slf.clone().unbind())
    }

    /// Whether no recorded operation has made it.
    #[getter]
    fn is_leaf(&self) -> bool {
        self.0.is_leaf()
    }

    /// The gradient that backward passes have added up, or None.
    #[getter]
    fn grad(&self) -> Option<PyTensor> {
        self.0.grad().map(PyTensor)
    }

    #[setter]
    fn set_grad(&self, grad: Option<&PyTensor>) -> PyResult<()> {
        self.0.set_grad(grad.map(|grad| grad.0.clone())).py()
    }

    /// Adds the gradients of this tensor to those of all leaves it depends on, or of `inputs`.
    #[pyo3(signature = (gradient=None, retain_graph=None, create_graph=false, inputs=None))]
    fn backward(
        &self,
        py: Python<'_>,
        gradient: Option<&PyTensor>,
        retain_graph: Option<bool>,
        create_graph: bool,
        inputs: Option<Vec<PyRef<'_, PyTensor>>>,
    ) -> PyResult<()> {
        session::ready(py, &self.0)?;
        source::note(py);
        let retain_graph = retain_graph.unwrap_or(create_graph);
        let options = BackwardOptions { retain_graph, create_graph };
        let root = [(&self.0, gradient.map(|gradient| &gradient.0))];
        match inputs {
            None => tape::backward(&root, options).py(),
            Some(inputs) => {
                let inputs: Vec<_> = inputs.iter().map(|input| input.0.clone()).collect();
                tape::backward_to(&root, &inputs, options).py()
            }
        }
    }

    /// The same values in the same memory, without their history.
    fn detach(&self) -> PyTensor {
        PyTensor(self.0.detach())
    }
}
