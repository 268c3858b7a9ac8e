//! Autograd: a tape of recorded operations, and backward passes over it.
//!
//! Each recorded operation is a [`TapeNode`] with the values that its gradient rule needs. Tensors
//! own the nodes that made them, and nodes own their operands' nodes, so a graph lives as long as a
//! tensor can reach it; the tape itself has weak references. A backward pass issues instructions
//! that compute the gradients.
//!
//! - [`node`]: nodes of the graph; [`list`]: the tape itself.
//! - [`backward`]: the pass over a graph; [`rules`]: the gradients of one operation.
//! - [`reach`]: the tensors that another one depends on.
//! - [`function`]: functions with user-defined gradients; [`hooks`]: hooks on gradients.

mod backward;
mod function;
mod hooks;
mod list;
mod node;
mod reach;
mod rules;

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard};

pub use backward::{BackwardOptions, Root, backward, backward_to, grad, reaches_others};
pub use function::{BackwardCall, Function};
pub use hooks::{Hook, HookHandle};
pub use list::{TapeEntry, tape};
pub(crate) use node::TapeNode;
pub use reach::depends;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Returns whether operations are recorded on this thread.
pub fn grad_enabled() -> bool {
    ENABLED.get()
}

/// Turns recording on or off on this thread, and returns the previous setting.
pub fn set_grad_enabled(enabled: bool) -> bool {
    ENABLED.replace(enabled)
}

/// Runs `body` without recording.
pub fn no_grad<T>(body: impl FnOnce() -> T) -> T {
    with_grad(false, body)
}

fn with_grad<T>(enabled: bool, body: impl FnOnce() -> T) -> T {
    struct RestoreGradMode(bool);
    impl Drop for RestoreGradMode {
        fn drop(&mut self) {
            ENABLED.set(self.0);
        }
    }
    let _restore = RestoreGradMode(ENABLED.replace(enabled));
    body()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
