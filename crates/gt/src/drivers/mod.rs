//! Drivers: the I/O around the cores. They own sockets, threads and clocks, and pass messages.
//!
//! - [`embedded`]: all cores in one process; [`network`]: one process each.
//! - [`files`]: work on files beside a worker's turns; [`memory`]: how much a worker may use.
//! - [`gpu`]: the use of a worker's GPU.
//! - [`watch`]: a watcher of either, from another process. [`operate`]: an operator of a server.
//! - [`run_ahead`]: how much of a session may be in flight.
//! - [`origin`]: the program of this process, as its sessions name it.
//! - [`system`]: what they ask the operating system.

mod answers;
pub mod embedded;
pub mod files;
pub mod gpu;
mod issues;
mod log;
pub mod memory;
pub mod network;
pub mod operate;
mod origin;
mod run_ahead;
mod sharding;
mod system;
mod undone;
pub mod watch;

pub use origin::origin;

use gt_engine_native::NativeEngine;
use gt_worker::{Engine, Options, Work, Worker};

use self::memory::MemoryOptions;
use crate::compiled::Reports;
use crate::{environment, mismatch};

/// Makes a worker, given its name and the number of threads for one large operation.
pub type MakeWorker<'a> = &'a dyn Fn(String, usize) -> Box<dyn Work>;

/// A worker on an engine, with options from GT_WORKER_BATCH_SIZE, GT_CHECK_NAN and, for its memory,
/// GT_MEMORY, GT_SPILL_DIR and GT_SPILL_LIMIT.
pub fn worker_on<E: Engine + 'static>(name: String, engine: E) -> Box<dyn Work>
where
    E::Tensor: 'static,
    E::Program: 'static,
{
    worker_with(name, engine, MemoryOptions::from_environment())
}

/// As [`worker_on`], with this memory.
pub fn worker_with<E: Engine + 'static>(
    name: String,
    engine: E,
    memory: MemoryOptions,
) -> Box<dyn Work>
where
    E::Tensor: 'static,
    E::Program: 'static,
{
    let batch_size = environment::count("GT_WORKER_BATCH_SIZE").unwrap_or(1) as usize;
    let check_nan = environment::switch("GT_CHECK_NAN") == Some(true);
    let options = Options { batch_size, check_nan, ..Options::default() };
    let options = memory.set(options, &engine);
    Box::new(Worker::new(name, engine).with_options(options))
}

/// A worker on the native engine.
pub fn native_worker(name: String, threads: usize) -> Box<dyn Work> {
    native_worker_with(name, threads, MemoryOptions::from_environment())
}

/// As [`native_worker`], with this memory.
pub fn native_worker_with(name: String, threads: usize, memory: MemoryOptions) -> Box<dyn Work> {
    let engine = NativeEngine::new(threads).when_different(mismatch::keep);
    worker_with(name, Reports::from_env().listen(engine), memory)
}
