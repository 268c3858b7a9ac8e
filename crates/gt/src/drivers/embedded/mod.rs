//! Dispatcher and workers in the user's process, joined by queues, nothing serialized.
//!
//! - [`driver`]: the session's side: submits commands, waits for answers.
//! - [`runtime`]: the cores, and the way of messages between them; it states the order of locks.
//! - [`client`]: what the session has under way. [`threads`]: who drives the cores.
//! - [`handover`]: how work goes from thread to thread.
//! - [`watching`]: watchers in other processes; [`endpoint`]: where they reach it.
//! - [`fork`], [`forks`]: keep a runtime whole when its process forks.
//!
//! A thread that waits for a value drives the cores itself where the work is small, so that a
//! round trip costs microseconds; threads start only with the first work that is worth it.

mod client;
mod driver;
mod endpoint;
pub mod fork;
mod forks;
pub mod handover;
mod runtime;
mod threads;
mod watching;

use std::sync::{Arc, Mutex, MutexGuard};

use gt_client::{ClientError, Result, Session};
use gt_ir::modifier::Modifier;

use super::{MakeWorker, native_worker};

/// A session with its own dispatcher and `workers` workers on the native engine.
///
/// # Errors
/// No worker asked for.
pub fn start(workers: usize) -> Result<Session> {
    start_with(workers, &native_worker, Vec::new())
}

/// A session with its own dispatcher, whose stream passes the modifiers, and `workers` workers that
/// `make` makes.
///
/// # Errors
/// No worker asked for.
pub fn start_with(
    workers: usize,
    make: MakeWorker,
    modifiers: Vec<Box<dyn Modifier>>,
) -> Result<Session> {
    if workers == 0 {
        return Err(ClientError::usage("at least one worker is needed, 0 were asked for"));
    }
    Ok(Session::new(Arc::new(driver::EmbeddedDriver::new(workers, make, modifiers))))
}

/// Locks, whoever has panicked.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
