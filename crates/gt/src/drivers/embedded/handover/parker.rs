//! Parks a thread; unparking is cheap if it is not parked.

use std::time::Duration;

use super::sync::{AtomicBool, Mutex, Ordering, Thread, lock, thread};

/// One registered thread parks on it; any thread may unpark it.
#[derive(Default)]
pub struct Parker {
    is_parked: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Parker {
    /// Unparks the thread; if it is about to park, it will not.
    pub fn unpark(&self) {
        if self.is_parked.swap(false, Ordering::SeqCst)
            && let Some(thread) = &*lock(&self.thread)
        {
            thread.unpark();
        }
    }

    /// Registers this thread as the one that parks.
    pub fn register(&self) {
        *lock(&self.thread) = Some(thread::current());
    }

    /// Parks the registered thread until it is unparked or `limit` is over. `has_work` is checked
    /// after `is_parked` is set, so that no wakeup is lost.
    pub fn park(&self, limit: Duration, has_work: impl FnOnce() -> bool) {
        self.is_parked.store(true, Ordering::SeqCst);
        if !has_work() {
            park(limit);
        }
        self.is_parked.store(false, Ordering::SeqCst);
    }

    /// Forgets the thread, which does not exist after a fork.
    pub fn reset(&self) {
        lock(&self.thread).take();
        self.is_parked.store(false, Ordering::SeqCst);
    }
}

#[cfg(not(feature = "model"))]
fn park(limit: Duration) {
    thread::park_timeout(limit);
}

/// A model has no time: a thread that is never unparked is a lost wakeup.
#[cfg(feature = "model")]
fn park(_: Duration) {
    thread::park();
}
