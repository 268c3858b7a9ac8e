//! GT: eager tensors with autograd that run on any number of workers.
//!
//! ```
//! let session = gt::embedded(1)?;
//! let a = gt::Tensor::from_slice(&session, &[1.0f32, 2.0, 3.0], &[3])?;
//! let b = a.mul(2.0)?.sum(&[], false)?;
//! assert_eq!(b.item()?.as_f64(), 12.0);
//! # Ok::<(), gt::ClientError>(())
//! ```
//!
//! - [`drivers`]: connect clients, dispatcher and workers, in this process or over a network.
//! - [`logging`]: messages on stderr, through `tracing`.
//! - [`compiled`]: reports of compiled plans.
//! - Programs use the client's API, re-exported here: [`Tensor`], [`Session`], [`nn`], [`optim`].

mod archive;
pub mod compiled;
pub mod drivers;
pub mod logging;
pub mod mismatch;

pub use drivers::network::client::{attach, connect, connect_as, new_token};
pub use gt_client::{
    Asked, AskedSave, CallbackError, ClientError, Driver, KeptName, KeptTensors, NewPublication,
    Result, Session, SharedTensors, Tensor, Transaction, ValueRef, ValueStep, WeakSession,
    autocast, config, environment, failed_text, grad_enabled, nn, no_grad, optim, program,
    set_grad_enabled, signal, source, tape, tensor, vmap,
};
pub use gt_dispatcher::LineageLimits;
pub use gt_ir as ir;
pub use gt_ir::modifier::Modifier;
pub use gt_ir::{DType, Scalar, SessionOrigin, Shape, TensorData};
pub use gt_net as net;
pub use gt_recording as recording;
pub use gt_worker as worker;

pub use drivers::memory::MemoryOptions;
pub use drivers::{MakeWorker, native_worker, native_worker_with, origin, worker_on, worker_with};
pub use gt_engine_native::NativeEngine;
pub use gt_engine_native::arithmetic as native_arithmetic;

/// The programs of the guides, which run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/extending/modifier.md")]
pub struct ModifierGuide;

/// A session with its dispatcher and `workers` workers in this process.
///
/// # Errors
/// `workers` is 0.
pub fn embedded(workers: usize) -> Result<Session> {
    drivers::embedded::start(workers)
}

/// Like [`embedded`], with workers made by `make`; the session has the name of `origin`.
///
/// # Errors
/// No worker asked for.
pub fn embedded_with(workers: usize, make: MakeWorker, origin: SessionOrigin) -> Result<Session> {
    drivers::embedded::start_with(workers, make, Vec::new(), origin)
}

/// Like [`embedded`], with stream modifiers, applied in order.
///
/// # Errors
/// No worker asked for.
pub fn embedded_modified(workers: usize, modifiers: Vec<Box<dyn Modifier>>) -> Result<Session> {
    drivers::embedded::start_with(workers, &native_worker, modifiers, origin(None))
}
