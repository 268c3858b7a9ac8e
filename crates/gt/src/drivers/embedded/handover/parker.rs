//! Parks a thread, and unparks it cheaply where it is awake already.

use std::time::Duration;

use super::sync::{AtomicBool, Mutex, Ordering, Thread, lock, thread};

/// One thread parks on it, any may unpark it.
#[derive(Default)]
pub struct Parker {
    is_parked: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Parker {
    /// Wakes the thread; keeps it awake if it is just about to park.
    pub fn unpark(&self) {
        if self.is_parked.swap(false, Ordering::SeqCst)
            && let Some(thread) = &*lock(&self.thread)
        {
            thread.unpark();
        }
    }

    /// This thread is the one that parks.
    pub fn register(&self) {
        *lock(&self.thread) = Some(thread::current());
    }

    /// Parks until it is unparked or `limit` is over. `has_work` is asked once more after the thread
    /// can be unparked, so that nothing is missed. The thread is the registered one.
    pub fn park(&self, limit: Duration, has_work: impl FnOnce() -> bool) {
        self.is_parked.store(true, Ordering::SeqCst);
        if !has_work() {
            park(limit);
        }
        self.is_parked.store(false, Ordering::SeqCst);
    }

    /// Forgets its thread, which is gone after a fork.
    pub fn reset(&self) {
        lock(&self.thread).take();
        self.is_parked.store(false, Ordering::SeqCst);
    }
}

#[cfg(not(feature = "model"))]
fn park(limit: Duration) {
    thread::park_timeout(limit);
}

/// A model has no time: a thread that is never unparked is one that was forgotten.
#[cfg(feature = "model")]
fn park(_: Duration) {
    thread::park();
}
