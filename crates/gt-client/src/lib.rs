//! The client: what user code talks to. It turns tensor code into a stream of instructions.
//!
//! - [`session`]: the stream, and the [`driver`] that carries it away.
//! - [`hotpath`]: what the stream repeats is sent once.
//! - [`tensor`]: tensors and their operations.
//! - [`tape`]: gradients, which are more instructions.
//! - [`program`]: what a function issued, to be issued again.
//! - [`vmap`]: functions computed for a whole batch at once.
//! - [`autocast`]: products in a lower precision.
//! - [`signal`]: named scopes.
//! - [`config`]: what signals mean, in YAML.
//! - [`environment`]: what environment variables say.
//! - [`source`]: which line of the user's program issued what.
//! - [`transaction`]: changes that take place together, or not at all.
//! - [`nn`], [`optim`]: modules, losses and optimizers for Rust programs.
//!
//! The client knows shapes and dtypes, never where a tensor lives or who computes it.

pub mod autocast;
pub mod config;
pub mod driver;
pub mod environment;
pub mod error;
pub mod hotpath;
mod nearest;
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
pub use session::{Asked, AskedSave, Session, WeakSession};
pub use tape::{grad_enabled, no_grad, set_grad_enabled};
pub use tensor::{Tensor, ValueRef};
pub use transaction::{Transaction, ValueStep};
