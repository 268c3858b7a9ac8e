//! Autograd: a tape of what was computed, and the gradients that follow from it.
//!
//! Each recorded operation is a [`TapeNode`] that holds what its gradient rule needs. Nodes hang on
//! the tensors they made, so a graph lives as long as something can still reach it; the tape
//! itself only lists them. Gradients are further instructions, issued in reverse order.
//!
//! - [`node`]: what stands on the tape; [`list`]: the tape itself.
//! - [`backward`]: the pass over a graph; [`rules`]: one operation's part in it.
//! - [`reach`]: what a tensor depends on.
//! - [`function`]: functions whose gradients a user defines; [`hooks`]: users' looks at gradients.

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

/// Whether operations are recorded on this thread.
pub fn grad_enabled() -> bool {
    ENABLED.get()
}

/// Turns recording on or off on this thread, and returns how it was.
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
