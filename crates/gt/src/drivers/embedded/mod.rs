//! The embedded driver: dispatcher and workers in the user's process, connected by queues, without
//! serialization.
//!
//! - [`driver`]: the session's side: submits commands, waits for answers.
//! - [`runtime`]: the cores, the routing of messages between them, and the lock order.
//! - [`client`]: the session's commands in flight; [`threads`]: the workers' threads.
//! - [`handover`]: the primitives by which threads hand over work.
//! - [`watching`]: watchers in other processes; [`endpoint`] over [`listener`]: the socket they
//!   connect to.
//! - [`filing`]: files that its workers read and write.
//! - [`fork`], [`forks`]: fork safety.
//!
//! A thread that waits for a value drives the cores itself if there is little work, so that a
//! round trip takes microseconds; threads start with the first work that is worth it.

mod client;
mod driver;
mod endpoint;
mod filing;
pub mod fork;
mod forks;
pub mod handover;
mod listener;
mod runtime;
mod threads;
mod watching;

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard};

use gt_client::{ClientError, Driver, Result, Session};
use gt_ir::SessionOrigin;
use gt_ir::modifier::Modifier;
use gt_ir::stored::StoredValues;
use gt_recording::RecordedPlace;
use gt_store::place::DataRoots;
use gt_store::values;

use super::{MakeWorker, native_worker};

/// A session with its own dispatcher and `workers` workers on the native engine.
///
/// # Errors
/// No worker asked for.
pub fn start(workers: usize) -> Result<Session> {
    start_with(workers, &native_worker, Vec::new(), super::origin(None))
}

/// A session with its own dispatcher, which applies the modifiers, and `workers` workers made by
/// `make`; the session has the name of `origin`. It is recorded if `GT_RECORD` is set.
///
/// # Errors
/// No worker asked for, or the file of the recording cannot be written.
pub fn start_with(
    workers: usize,
    make: MakeWorker,
    modifiers: Vec<Box<dyn Modifier>>,
    origin: SessionOrigin,
) -> Result<Session> {
    let engine = RefCell::new(String::new());
    let noting = |name: String, threads: usize| {
        let worker = make(name, threads);
        *engine.borrow_mut() = worker.stats().engine;
        worker
    };
    let make: MakeWorker = if gt_recording::is_asked() { &noting } else { make };
    let driver = driver(workers, make, modifiers, origin)?;
    let place = |driver: &dyn Driver| RecordedPlace {
        description: driver.describe(),
        engine: engine.take(),
        workers: workers as u32,
        is_remote: false,
    };
    // Its workers may read whatever this process may.
    let read = |stored: &StoredValues| values::read(&DataRoots::Anywhere, stored).ok();
    Ok(Session::new(gt_recording::record_if_asked(driver, place, read)?))
}

/// The driver of such a session, which is not recorded.
///
/// # Errors
/// No worker asked for.
pub fn driver(
    workers: usize,
    make: MakeWorker,
    modifiers: Vec<Box<dyn Modifier>>,
    origin: SessionOrigin,
) -> Result<Arc<dyn Driver>> {
    if workers == 0 {
        return Err(ClientError::usage("at least one worker is needed, 0 were asked for"));
    }
    Ok(Arc::new(driver::EmbeddedDriver::new(workers, make, modifiers, origin)))
}

/// Locks, ignoring poison.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
