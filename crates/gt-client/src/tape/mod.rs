//! Autograd: a tape of recorded operations, and backward passes over it.
//!
//! Each recorded operation is a [`TapeNode`] with the values that its gradient rule needs. Tensors
//! own the nodes that made them, and nodes own their operands' nodes, so a graph lives as long as a
//! tensor can reach it; the tape itself has weak references. A backward pass issues instructions
//! that compute the gradients.
//!
//! - [`backward`]: the pass over a graph; [`rules`], [`function`]: the gradients of one operation, and
//!   of a function with user-defined ones.
//! - [`list`]: the tape itself, for display. [`reach`]: the tensors that another one depends on.
//!
//! The nodes are part of tensors: `tensor/node`.

mod backward;
mod function;
mod list;
mod reach;
mod rules;

use crate::context;
pub use crate::tensor::node::function::{BackwardCall, Function};
pub use crate::tensor::node::hooks::{AccumulatedHook, Hook, HookHandle};
pub use backward::{BackwardOptions, Root, backward, backward_to, grad, reaches_others};
pub use list::{TapeEntry, tape};
pub use reach::depends;

/// Returns whether operations are recorded on this thread.
pub fn grad_enabled() -> bool {
    context::records_gradients()
}

/// Turns recording on or off on this thread, and returns the previous setting.
pub fn set_grad_enabled(enabled: bool) -> bool {
    context::with(|context| context.record_gradients(enabled))
}

/// Runs `body` without recording.
pub fn no_grad<T>(body: impl FnOnce() -> T) -> T {
    context::no_grad(body)
}
