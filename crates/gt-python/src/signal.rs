//! Signal scopes of the current thread.

use gt::signal;
use pyo3::prelude::*;

use crate::error::IntoPython;
use crate::session;
use crate::source;
use crate::tensor::PyTensor;

/// Opens a scope; gives how many were open.
#[pyfunction]
#[pyo3(signature = (name, backward=None))]
fn signal_enter(name: &str, backward: Option<&str>) -> PyResult<usize> {
    signal::enter(name, backward).py()
}

/// Closes the innermost scopes until `depth` are left.
#[pyfunction]
fn signal_unwind(depth: usize) {
    signal::unwind(depth);
}

#[pyfunction]
fn signal_exit(name: &str) -> PyResult<()> {
    signal::exit(name).py()
}

/// The names of the innermost scope's signal and backward signal.
#[pyfunction]
fn signal_current() -> (Option<String>, Option<String>) {
    let scope = signal::innermost();
    (signal::name(scope.signal), signal::name(scope.backward))
}

/// A copy of a tensor placed as a signal says.
#[pyfunction]
#[pyo3(signature = (tensor, name, backward=None))]
fn signal_tensor(
    py: Python<'_>,
    tensor: &PyTensor,
    name: &str,
    backward: Option<&str>,
) -> PyResult<PyTensor> {
    session::ready(py, &tensor.0)?;
    source::note(py);
    Ok(PyTensor(tensor.0.with_signal(name, backward).py()?))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(signal_enter, module)?)?;
    module.add_function(wrap_pyfunction!(signal_exit, module)?)?;
    module.add_function(wrap_pyfunction!(signal_unwind, module)?)?;
    module.add_function(wrap_pyfunction!(signal_current, module)?)?;
    module.add_function(wrap_pyfunction!(signal_tensor, module)?)
}
