//! Process exit.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gt::signal;
use pyo3::exceptions::PyConnectionError;
use pyo3::prelude::*;

use super::{fork, handle};
use crate::engine;

/// Whether the process is exiting: sessions end while other threads may still use them.
static EXITING: AtomicBool = AtomicBool::new(false);

/// How long process exit waits for sessions that other threads are opening or closing.
const CHANGES_TIMEOUT: Duration = Duration::from_secs(1);

/// The number of threads that are about to call Python, or do.
static CALLERS: AtomicUsize = AtomicUsize::new(0);

/// How long process exit waits for them: each holds the interpreter's lock for a fraction of that.
const CALLERS_TIMEOUT: Duration = Duration::from_secs(2);

/// A thread that calls Python by itself, for a short time. Python would end it in the middle of a call
/// if its interpreter ended meanwhile, so process exit waits for it.
pub struct PythonCaller(());

impl PythonCaller {
    /// Returns one, unless the process is exiting.
    pub fn enter() -> Option<PythonCaller> {
        CALLERS.fetch_add(1, Ordering::SeqCst);
        let caller = PythonCaller(());
        (!is_exiting()).then_some(caller)
    }
}

impl Drop for PythonCaller {
    fn drop(&mut self) {
        CALLERS.fetch_sub(1, Ordering::SeqCst);
    }
}

fn wait_for_callers() {
    let until = Instant::now() + CALLERS_TIMEOUT;
    while CALLERS.load(Ordering::SeqCst) > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns whether the process is exiting.
pub fn is_exiting() -> bool {
    EXITING.load(Ordering::SeqCst)
}

/// Returns whether the process is exiting and this is not its main thread. Python's own daemon
/// threads stop silently then.
fn is_stranded(py: Python<'_>) -> bool {
    is_exiting() && !is_main_thread(py)
}

/// Parks this thread for ever if the process is exiting and this is not the main thread.
pub fn park_if_stranded(py: Python<'_>) {
    if is_stranded(py) {
        py.detach(|| {
            loop {
                std::thread::park();
            }
        })
    }
}

/// Returns an error if the process is exiting: no new session may be opened.
pub fn refuse(py: Python<'_>) -> PyResult<()> {
    if is_exiting() { Err(refusal(py)) } else { Ok(()) }
}

/// Returns the error of [`refuse`]. Only the main thread returns; others are parked.
pub fn refusal(py: Python<'_>) -> PyErr {
    park_if_stranded(py);
    PyConnectionError::new_err(
        "the process is ending, and all sessions have ended\n  hint: what is registered with atexit after `import gt` runs before that",
    )
}

/// Returns whether this is Python's main thread.
pub fn is_main_thread(py: Python<'_>) -> bool {
    py.import("threading")
        .and_then(|threading| {
            Ok((threading.call_method0("main_thread")?, threading.call_method0("current_thread")?))
        })
        .map_or(true, |(main, current)| main.is(&current))
}

/// Close all sessions and engines at process exit.
#[pyfunction]
fn end_process(py: Python<'_>) {
    if let Some(open) = signal::name(signal::innermost().signal) {
        tracing::warn!("the signal scope '{open}' was entered and never left");
    }
    EXITING.store(true, Ordering::SeqCst);
    // Threads that are opening a session finish first, so that it is closed with the others.
    py.detach(|| fork::wait_for_changes(CHANGES_TIMEOUT));
    py.detach(wait_for_callers);
    handle::close_all(py);
    py.detach(engine::close_engines);
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(end_process, module)?)
}
