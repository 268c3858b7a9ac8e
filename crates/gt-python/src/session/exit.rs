//! The end of the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gt::signal;
use pyo3::exceptions::PyConnectionError;
use pyo3::prelude::*;

use super::{fork, handle};
use crate::engine;

/// The process is ending, and with it the sessions under the feet of other threads.
static EXITING: AtomicBool = AtomicBool::new(false);

/// How long the end of the process waits for sessions that other threads are opening or closing.
const LAST: Duration = Duration::from_secs(1);

/// Whether the process is ending.
pub fn is_exiting() -> bool {
    EXITING.load(Ordering::SeqCst)
}

/// Whether the process is ending, and this is a thread that ends with it: Python's own just stop
/// then.
fn is_stranded(py: Python<'_>) -> bool {
    is_exiting() && !is_main_thread(py)
}

/// At the end of the process, ends the work of all threads but the main one.
pub fn park_if_stranded(py: Python<'_>) {
    if is_stranded(py) {
        py.detach(|| {
            loop {
                std::thread::park();
            }
        })
    }
}

/// Refuses new sessions at the end of the process.
pub fn refuse(py: Python<'_>) -> PyResult<()> {
    if is_exiting() { Err(refusal(py)) } else { Ok(()) }
}

/// Why there are no new sessions; for the main thread, as others do not come back.
pub fn refusal(py: Python<'_>) -> PyErr {
    park_if_stranded(py);
    PyConnectionError::new_err(
        "the process is ending, and all sessions have ended\n  hint: what is registered with atexit after `import gt` runs before that",
    )
}

/// Whether this is the thread that Python calls its main thread.
pub fn is_main_thread(py: Python<'_>) -> bool {
    py.import("threading")
        .and_then(|threading| {
            Ok((threading.call_method0("main_thread")?, threading.call_method0("current_thread")?))
        })
        .map_or(true, |(main, current)| main.is(&current))
}

/// Ends all sessions for good, at the end of the process.
#[pyfunction]
fn end_process(py: Python<'_>) {
    if let Some(open) = signal::name(signal::innermost().signal) {
        tracing::warn!("the signal scope '{open}' was entered and never left");
    }
    EXITING.store(true, Ordering::SeqCst);
    // Whoever is opening a session comes to an end of it, so that it is closed with the others.
    py.detach(|| fork::wait_for_changes(LAST));
    handle::close_all(py);
    py.detach(engine::close_engines);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(end_process, module)?)
}
