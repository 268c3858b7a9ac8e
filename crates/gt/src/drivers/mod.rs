//! Drivers: the I/O around the cores. They own sockets, threads and clocks, and pass messages.
//!
//! - [`embedded`]: all cores in one process; [`network`]: one process each.
//! - [`files`]: work on files beside a worker's turns.
//! - [`watch`]: a watcher of either, from another process.

mod answers;
pub mod embedded;
pub mod files;
mod issues;
mod log;
pub mod network;
mod sharding;
pub mod watch;

use gt_engine_native::NativeEngine;
use gt_worker::{Engine, Options, Work, Worker};

use crate::compiled::Reports;
use crate::{environment, mismatch};

/// Makes a worker, given its name and the number of threads for one large operation.
pub type MakeWorker<'a> = &'a dyn Fn(String, usize) -> Box<dyn Work>;

/// A worker on an engine, with options from GT_WORKER_BATCH_SIZE and GT_CHECK_NAN.
pub fn worker_on<E: Engine + 'static>(name: String, engine: E) -> Box<dyn Work>
where
    E::Tensor: 'static,
    E::Program: 'static,
{
    let batch_size = environment::count("GT_WORKER_BATCH_SIZE").unwrap_or(1) as usize;
    let check_nan = environment::switch("GT_CHECK_NAN") == Some(true);
    let options = Options { batch_size, check_nan, ..Options::default() };
    Box::new(Worker::new(name, engine).with_options(options))
}

/// A worker on the native engine.
pub fn native_worker(name: String, threads: usize) -> Box<dyn Work> {
    let engine = NativeEngine::new(threads).when_different(mismatch::keep);
    worker_on(name, Reports::from_env().listen(engine))
}
