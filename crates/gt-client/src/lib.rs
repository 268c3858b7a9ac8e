//! The client library: sessions, tensors, autograd. It turns tensor code into a stream of
//! instructions.
//!
//! From the bottom up, each module uses only those above it:
//!
//! - [`environment`]: reads environment variables. [`config`]: placements of signals, in YAML.
//! - [`context`]: what a thread's instructions are issued under; [`signal`], [`source`], [`autocast`]:
//!   its scopes, its line and its precision, for users.
//! - [`driver`]: the interface that sends commands to a dispatcher. [`hotpath`]: detects loops in the
//!   stream and sends each iteration as one invocation. [`session`]: the stream of commands.
//! - [`batching`]: operations on values that are mapped over.
//! - [`tensor`]: tensors and their operations.
//! - [`vmap`]: maps a function over a batch axis. [`tape`]: autograd; a backward pass issues further
//!   instructions. [`program`]: records the instructions of a function and replays them.
//! - [`transaction`]: changes of several tensors that take effect together, or not at all.
//! - [`nn`], [`optim`]: modules, losses and optimizers for Rust programs.
//!
//! Of the workspace it depends on `gt-ir` only; `gt` implements [`Driver`], and `gt-python` wraps
//! the client for Python. The client knows shapes and dtypes, never on which worker a tensor is, or
//! which engine computes it.

pub mod autocast;
mod batching;
pub mod config;
mod context;
pub mod driver;
pub mod environment;
pub mod error;
pub mod hotpath;
pub mod nn;
pub mod optim;
pub mod program;
pub mod session;
pub mod signal;
pub mod source;
pub mod tape;
pub mod tensor;
pub mod transaction;
pub mod vmap;

pub use driver::Driver;
pub use error::{CallbackError, ClientError, Result, failed_text};
pub use session::{Asked, KeptName, Session, WeakSession};
pub use tape::{grad_enabled, no_grad, set_grad_enabled};
pub use tensor::{AskedSave, KeptTensors, NewPublication, SharedTensors, Tensor, ValueRef};
pub use transaction::{Transaction, ValueStep};
