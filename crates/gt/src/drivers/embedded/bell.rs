//! Wakes a thread, cheaply where it is awake already.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

/// One thread sleeps on it, any may ring.
#[derive(Default)]
pub struct Bell {
    asleep: AtomicBool,
    sleeper: Mutex<OnceLock<Thread>>,
}

impl Bell {
    /// Wakes the sleeper; keeps it awake if it is just about to sleep.
    pub fn ring(&self) {
        if self.asleep.swap(false, Ordering::SeqCst)
            && let Some(sleeper) = self.lock().get()
        {
            sleeper.unpark();
        }
    }

    /// Sleeps until the bell rings or `limit` is over. `has_work` is asked once more after the
    /// bell is set up, so that no ring is missed.
    pub fn sleep(&self, limit: Duration, has_work: impl FnOnce() -> bool) {
        self.lock().get_or_init(thread::current);
        self.asleep.store(true, Ordering::SeqCst);
        if !has_work() {
            thread::park_timeout(limit);
        }
        self.asleep.store(false, Ordering::SeqCst);
    }

    /// Forgets its sleeper, which is gone after a fork.
    pub fn reset(&self) {
        self.lock().take();
        self.asleep.store(false, Ordering::SeqCst);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, OnceLock<Thread>> {
        self.sleeper.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
