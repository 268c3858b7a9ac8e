//! How work goes from thread to thread: the two places where threads of an embedded runtime meet.
//!
//! Both are generic over what goes through them, so that a model checker can try their schedules
//! (`tests/handover.rs`, with the feature `model`).
//!
//! - [`mailbox`]: messages for a state that one thread at a time works on.
//! - [`parker`]: a thread that sleeps until there is work.

mod mailbox;
mod parker;

pub use mailbox::Mailbox;
pub use parker::Parker;

/// The primitives of the standard library, or those of the model checker.
mod sync {
    #[cfg(feature = "model")]
    pub use shuttle::{
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
        sync::{Mutex, MutexGuard},
        thread::{self, Thread},
    };
    #[cfg(not(feature = "model"))]
    pub use std::{
        sync::atomic::{AtomicBool, AtomicUsize, Ordering},
        sync::{Mutex, MutexGuard},
        thread::{self, Thread},
    };

    /// Locks, whoever has panicked.
    pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
