//! The two synchronization primitives by which threads of an embedded runtime hand over work.
//!
//! Both are generic, so that a model checker can explore their schedules (`tests/handover.rs`,
//! with the feature `model`).
//!
//! - [`mailbox`]: a state that one thread at a time works on, with an inbox.
//! - [`parker`]: parks a thread until there is work.

mod mailbox;
mod parker;

pub use mailbox::Mailbox;
pub use parker::Parker;

/// The standard library's primitives, or the model checker's.
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

    /// Locks, ignoring poison.
    pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
