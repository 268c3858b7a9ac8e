//! The end of a worker process whose device fails all calls: a fault of CUDA lasts for as long as the
//! process does. The supervisor of workers starts another one, and the dispatcher recovers the
//! sessions, as for any worker that dies.

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;

use super::SharedObject;

/// The exit status, as of a worker whose engine hangs.
const STATUS: i32 = 3;

/// The engine of this worker process, and how messages name it. In a process of a user, which must
/// not end, there is none.
static OF_WORKER: OnceLock<(SharedObject, String)> = OnceLock::new();

/// Has [`check`] end this process, a worker with this engine.
pub fn end_process_of(engine: &SharedObject, name: String) {
    let _ = OF_WORKER.set((Arc::clone(engine), name));
}

/// Ends this process if it is a worker's, and the engine finds by an error that its device is lost.
/// The command that met the error is not answered: it may have another cause, and is run again.
pub fn check(py: Python<'_>, error: &PyErr) {
    let Some((engine, name)) = OF_WORKER.get() else { return };
    let is_lost = engine.call_method1(py, "is_device_lost", (error.value(py),));
    if !is_lost.is_ok_and(|is_lost| is_lost.is_truthy(py).unwrap_or(false)) {
        return;
    }
    let text = error.value(py).to_string();
    let reason = text.lines().next().unwrap_or_default();
    eprintln!("{name}: the device has failed ({reason}); the worker ends");
    // SAFETY: the call does not return. Functions that libraries have registered for the end of the
    // process are not called, as they may wait for the device.
    unsafe { libc::_exit(STATUS) };
}
