//! Error messages for exceptions of Python engines.

use gt::worker::EngineError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyMemoryError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::lost_device;
use crate::session::exit;

/// Converts a Python exception to an engine error. Errors in the user's values keep the engine's
/// message; others get the traceback.
pub fn explain(error: PyErr) -> EngineError {
    Python::attach(|py| {
        let cause = error.cause(py).unwrap_or_else(|| error.clone_ref(py));
        lost_device::check(py, &cause);
        if cause.is_instance_of::<PyMemoryError>(py)
            && let Ok(bytes) = cause.value(py).getattr("bytes").and_then(|bytes| bytes.extract())
        {
            return EngineError::OutOfMemory { bytes };
        }
        if reraise_interrupt(py, &cause) {
            return EngineError::Other("interrupted by Ctrl-C".into());
        }
        let known = [
            "IndexError",
            "ZeroDivisionError",
            "ArithmeticError",
            "MemoryError",
            "ConnectionError",
        ];
        let kind = cause.get_type(py).name().map(|name| name.to_string()).unwrap_or_default();
        let mut text = error.value(py).to_string();
        if text.is_empty() {
            text = kind.clone();
        }
        if !known.contains(&kind.as_str()) {
            let lines = py.import("traceback").and_then(|traceback| {
                let options = PyDict::new(py);
                options.set_item("limit", -8)?;
                let given = (cause.get_type(py), cause.value(py), cause.traceback(py));
                traceback.call_method("format_exception", given, Some(&options))
            });
            let lines: Vec<String> = lines.and_then(|lines| lines.extract()).unwrap_or_default();
            text = format!("{text}\n  the engine's traceback:\n  {}", indent(&lines.concat()));
        }
        EngineError::Other(text)
    })
}

/// Returns the answer of a question to an engine, or the default if the engine fails to answer.
pub fn answer<T: Default>(py: Python<'_>, answered: PyResult<T>) -> T {
    answered.unwrap_or_else(|error| {
        lost_device::check(py, &error);
        reraise_interrupt(py, &error);
        T::default()
    })
}

/// Raises Ctrl-C again in the main thread if the exception is one, since it is meant for the waiting
/// user and not for the engine that it interrupted. Returns whether it is one.
fn reraise_interrupt(py: Python<'_>, error: &PyErr) -> bool {
    let is_interrupt = is_interrupt(error);
    if is_interrupt {
        let _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
    }
    is_interrupt
}

/// Returns whether a signal raised the exception, which happens in the main thread only.
fn is_interrupt(error: &PyErr) -> bool {
    Python::attach(|py| {
        let class = py.import("gt._processes").and_then(|module| module.getattr("interrupt"));
        error.is_instance_of::<PyKeyboardInterrupt>(py)
            && exit::is_main_thread(py)
            && class.is_ok_and(|class| error.is_instance(py, &class))
    })
}

fn indent(text: &str) -> String {
    text.trim_end().replace('\n', "\n  ")
}
