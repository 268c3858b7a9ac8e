//! Signal scopes of the current thread, for `gt.signal`.

use gt::signal;
use pyo3::prelude::*;

use crate::error::IntoPython;
use crate::session;
use crate::source;
use crate::tensor::PyTensor;

/// Open a scope, and return how many scopes were open before.
#[pyfunction]
#[pyo3(signature = (name, backward=None))]
fn signal_enter(name: &str, backward: Option<&str>) -> PyResult<usize> {
    signal::enter(name, backward).py()
}

/// Close the innermost scopes until `depth` are left.
#[pyfunction]
fn signal_unwind(depth: usize) {
    signal::unwind(depth);
}

/// Close the innermost scope.
///
/// Raises:
///     RuntimeError: the innermost scope has another name, or no scope is open.
#[pyfunction]
fn signal_exit(name: &str) -> PyResult<()> {
    signal::exit(name).py()
}

/// Return the names of the innermost scope's signal and backward signal, each None if there is
/// none.
#[pyfunction]
fn signal_current() -> (Option<String>, Option<String>) {
    let scope = signal::innermost();
    (signal::name(scope.signal), signal::name(scope.backward))
}

/// Return a copy of a tensor, placed as the configuration of the signal says. `backward` names the
/// signal of its gradient.
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
