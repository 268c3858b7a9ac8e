//! The gate of a call that can be paused: its threads pass it between the pieces of their loops, and
//! wait there while it is closed.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The payload with which the threads of an abandoned call unwind.
struct Abandoned;

/// The gate of one call, shared by its threads and the thread that may pause it.
#[derive(Default)]
pub struct PauseGate {
    /// Whether threads have to stop: read at each piece, without the lock.
    is_closed: AtomicBool,
    state: Mutex<PauseGateState>,
    /// Notified when the last thread has left, or the call is complete.
    left: Condvar,
    /// Notified when the gate opens.
    opened: Condvar,
}

#[derive(Default)]
struct PauseGateState {
    /// The number of threads that compute.
    inside: usize,
    is_complete: bool,
    is_abandoned: bool,
}

impl PauseGate {
    fn lock(&self) -> MutexGuard<'_, PauseGateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while the gate is closed, and goes in.
    ///
    /// # Panics
    /// Unwinds if the call is abandoned.
    pub fn enter(&self) {
        let mut state = self.lock();
        while self.is_closed.load(Ordering::Relaxed) && !state.is_abandoned {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.is_abandoned {
            drop(state);
            resume_unwind(Box::new(Abandoned));
        }
        state.inside += 1;
    }

    /// Leaves. Nobody waits for the threads of an abandoned call.
    pub fn leave(&self) {
        let mut state = self.lock();
        if state.is_abandoned {
            return;
        }
        state.inside -= 1;
        if state.inside == 0 {
            self.left.notify_all();
        }
    }

    /// Waits outside while the gate is closed, for a thread that is inside.
    ///
    /// # Panics
    /// Unwinds if the call is abandoned; the thread is outside then.
    #[inline]
    pub fn pass(&self) {
        if self.is_closed.load(Ordering::Relaxed) {
            self.leave();
            self.enter();
        }
    }

    /// Ends the call: no thread is inside any more.
    pub fn complete(&self) {
        let mut state = self.lock();
        (state.inside, state.is_complete) = (0, true);
        self.left.notify_all();
    }

    /// Waits until the call is complete, at most this long; returns whether it is.
    pub fn wait(&self, at_most: Duration) -> bool {
        self.wait_for(at_most, |state| state.is_complete)
    }

    /// Closes the gate, and waits until no thread is inside, at most this long; returns whether
    /// that is so.
    pub fn close(&self, at_most: Duration) -> bool {
        self.is_closed.store(true, Ordering::Relaxed);
        self.wait_for(at_most, |state| state.inside == 0)
    }

    /// Opens the gate.
    pub fn open(&self) {
        let _state = self.lock();
        self.is_closed.store(false, Ordering::Relaxed);
        self.opened.notify_all();
    }

    /// Has all threads unwind that are at the gate, or will be.
    pub fn abandon(&self) {
        let mut state = self.lock();
        state.is_abandoned = true;
        self.is_closed.store(true, Ordering::Relaxed);
        self.opened.notify_all();
    }

    fn wait_for(&self, at_most: Duration, is_met: impl Fn(&PauseGateState) -> bool) -> bool {
        let until = Instant::now() + at_most;
        let mut state = self.lock();
        while !is_met(&state) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.left.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::threads::Threads;

    const LONG: Duration = Duration::from_secs(60);

    /// Begins a loop of many pieces on a thread of its own; the pieces are counted.
    /// Each passes the gate inside, as the parts of a product do.
    fn begin(count: usize) -> (Arc<PauseGate>, Arc<AtomicUsize>) {
        let (gate, done) = (Arc::new(PauseGate::default()), Arc::new(AtomicUsize::new(0)));
        let (of_thread, counted) = (Arc::clone(&gate), Arc::clone(&done));
        gate.enter();
        std::thread::spawn(move || {
            let mut threads = Threads::with_gate(count, Arc::clone(&of_thread));
            let _ = catch_unwind(AssertUnwindSafe(|| {
                threads.for_each(2000, |_| {
                    counted.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_micros(25));
                    of_thread.pass();
                    std::thread::sleep(Duration::from_micros(25));
                });
            }));
            of_thread.complete();
        });
        (gate, done)
    }

    #[test]
    fn a_paused_loop_stands_still_and_goes_on_where_it_was() {
        for count in [1, 3] {
            let (gate, done) = begin(count);
            for _ in 0..5 {
                assert!(gate.close(LONG));
                let before = done.load(Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(2));
                assert_eq!(done.load(Ordering::SeqCst), before);
                gate.open();
            }
            assert!(gate.wait(LONG));
            assert_eq!(done.load(Ordering::SeqCst), 2000);
            assert!(gate.close(LONG), "nobody is inside a complete call");
        }
    }

    #[test]
    fn an_abandoned_loop_ends_at_once_paused_or_not() {
        for count in [1, 3] {
            for is_paused in [false, true] {
                let (gate, done) = begin(count);
                assert!(!is_paused || gate.close(LONG));
                gate.abandon();
                assert!(gate.wait(LONG));
                assert!(done.load(Ordering::SeqCst) < 2000);
            }
        }
    }
}
