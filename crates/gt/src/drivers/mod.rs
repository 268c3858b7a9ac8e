//! Drivers join the cores, which know no sockets and threads, to each other.

pub mod embedded;
mod log;
pub mod network;
mod sharding;

use gt_engine_native::NativeEngine;
use gt_worker::{Engine, Options, Work, Worker};

use crate::compiled::Reports;

/// Makes a worker of a name, which may use some threads for one large operation.
pub type MakeWorker<'a> = &'a dyn Fn(String, usize) -> Box<dyn Work>;

/// A worker on an engine, which runs as the environment says: GT_WORKER_BATCH_SIZE, GT_CHECK_NAN.
pub fn worker_on<E: Engine + 'static>(name: String, engine: E) -> Box<dyn Work>
where
    E::Tensor: 'static,
    E::Program: 'static,
{
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let batch_size = variable("GT_WORKER_BATCH_SIZE").parse().unwrap_or(1);
    let options = Options { batch_size, check_nan: variable("GT_CHECK_NAN") == "1" };
    Box::new(Worker::new(name, engine).with_options(options))
}

/// A worker on the native engine.
pub fn native_worker(name: String, threads: usize) -> Box<dyn Work> {
    worker_on(name, Reports::from_env().listen(NativeEngine::new(threads)))
}
