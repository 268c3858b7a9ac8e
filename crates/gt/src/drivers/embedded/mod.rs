//! Dispatcher and workers in the user's process, joined by queues, nothing serialized.
//!
//! - [`driver`]: the session's side: submits commands, waits for answers.
//! - [`runtime`]: the cores and the threads that drive them.
//! - [`endpoint`]: where watchers in other processes reach it.
//! - [`fork`]: keeps a runtime whole when its process forks.
//!
//! A thread that waits for a value drives the cores itself where the work is small, so that a
//! round trip costs microseconds; threads start only with the first work that is worth it.

mod bell;
mod driver;
mod endpoint;
pub mod fork;
mod runtime;

use std::sync::Arc;

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
