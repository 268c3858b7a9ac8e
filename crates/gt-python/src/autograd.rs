//! Gradients: recording on and off, gradients of one tensor with respect to others.

use gt::tape::{self, BackwardOptions};
use pyo3::prelude::*;

use crate::error::IntoPython;
use crate::source;
use crate::tensor::PyTensor;

#[pyfunction]
fn is_grad_enabled() -> bool {
    gt::grad_enabled()
}

/// Turns recording on or off on this thread, and returns how it was.
#[pyfunction]
fn set_grad_enabled(enabled: bool) -> bool {
    gt::set_grad_enabled(enabled)
}

/// The gradients of `output` with respect to `inputs`; None for one it does not depend on.
#[pyfunction]
#[pyo3(signature = (output, inputs, gradient=None, retain_graph=false, create_graph=false))]
fn grad(
    py: Python<'_>,
    output: &PyTensor,
    inputs: Vec<PyRef<'_, PyTensor>>,
    gradient: Option<&PyTensor>,
    retain_graph: bool,
    create_graph: bool,
) -> PyResult<Vec<Option<PyTensor>>> {
    source::note(py);
    let inputs: Vec<_> = inputs.iter().map(|input| input.0.clone()).collect();
    let options = BackwardOptions { retain_graph, create_graph };
    let grads =
        tape::grad(&output.0, &inputs, gradient.map(|gradient| &gradient.0), options).py()?;
    Ok(grads.into_iter().map(|grad| grad.map(PyTensor)).collect())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(grad, module)?)
}
