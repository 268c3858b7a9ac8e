//! Drivers join the cores, which know no sockets and threads, to each other.

pub mod embedded;
mod log;
pub mod network;
mod sharding;

use gt_engine_native::NativeEngine;
use gt_worker::{Work, Worker};

/// Makes a worker of a name, which may use some threads for one large operation.
pub type MakeWorker<'a> = &'a dyn Fn(String, usize) -> Box<dyn Work>;

/// A worker on the native engine.
pub fn native_worker(name: String, threads: usize) -> Box<dyn Work> {
    Box::new(Worker::new(name, NativeEngine::new(threads)))
}
