//! Programs that run until a signal arrives.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// Runs `serve` without the GIL until it returns or a signal such as Ctrl-C arrives. `is_stopped`
/// returns whether one has, in case an engine's code has swallowed its exception.
pub fn until_signal(
    py: Python<'_>,
    is_stopped: &Bound<'_, PyAny>,
    serve: impl Send + FnOnce(&mut dyn FnMut() -> bool) -> PyResult<()>,
) -> PyResult<()> {
    let is_stopped = is_stopped.clone().unbind();
    let check = |py: Python<'_>| {
        py.check_signals()?;
        match is_stopped.call0(py)?.is_truthy(py)? {
            true => Err(PyKeyboardInterrupt::new_err(())),
            false => Ok(()),
        }
    };
    let mut raised = None;
    let result = py.detach(|| {
        // The server polls again while it shuts down.
        serve(&mut || match Python::attach(check) {
            Ok(()) => raised.is_some(),
            Err(error) => {
                raised = Some(error);
                true
            }
        })
    });
    match raised {
        Some(error) => Err(error),
        None => result,
    }
}
