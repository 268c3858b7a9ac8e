//! Keeps threads from a runtime's work while its process forks.
//!
//! Only the forking thread lives on in the child. So before a fork all threads are kept from work,
//! which leaves no lock of theirs held; afterwards the parent goes on.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const A_MOMENT: Duration = Duration::from_micros(50);

/// Counts the user's threads that are in calls, and keeps others out while a fork is under way.
#[derive(Default)]
pub struct ForkGuard {
    /// The user's threads that are at work in the runtime.
    calls: AtomicUsize,
    /// Whether they are kept from it, and by how many.
    is_closed: AtomicBool,
    holds: AtomicUsize,
    /// The fork comes next: the forking thread holds every lock of the language's, if there is one.
    is_forking: AtomicBool,
}

thread_local! {
    /// How many calls this thread is in: a fork waits for the outermost.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// As long as this lives, a fork waits.
pub struct InFlightCall<'a> {
    /// `None` within another call.
    guard: Option<&'a ForkGuard>,
    _inside: Inside,
}

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        if let Some(guard) = self.guard {
            guard.calls.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// This thread is in a call, or guarded by a [`Gate`].
pub struct Inside(());

/// Has calls on this thread not wait for a fork: it is one that a [`Gate`] keeps from work.
pub fn stay_inside() -> Inside {
    DEPTH.set(DEPTH.get() + 1);
    Inside(())
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl ForkGuard {
    /// One of the user's threads, which may wait without Python's lock, is in a call. As long as a
    /// fork is under way it waits; within another call it does not, for which the fork waits.
    pub fn enter(&self) -> InFlightCall<'_> {
        self.enter_unless(&self.is_closed)
    }

    fn enter_unless(&self, is_closed: &AtomicBool) -> InFlightCall<'_> {
        if DEPTH.get() > 0 {
            return InFlightCall { guard: None, _inside: stay_inside() };
        }
        loop {
            self.calls.fetch_add(1, Ordering::SeqCst);
            if !is_closed.load(Ordering::SeqCst) {
                return InFlightCall { guard: Some(self), _inside: stay_inside() };
            }
            self.calls.fetch_sub(1, Ordering::SeqCst);
            thread::sleep(A_MOMENT);
        }
    }

    /// The same for a moment in which nothing is computed. It waits only where the fork comes next:
    /// before that this thread may hold a lock that the forking thread needs.
    pub fn enter_briefly(&self) -> InFlightCall<'_> {
        self.enter_unless(&self.is_forking)
    }

    /// The fork comes next: waits for those who have entered briefly.
    pub fn settle(&self) {
        self.is_forking.store(true, Ordering::SeqCst);
        self.wait_for_calls();
    }

    fn wait_for_calls(&self) {
        while self.calls.load(Ordering::SeqCst) > 0 {
            thread::sleep(A_MOMENT);
        }
    }

    /// Waits until no thread is in a call, and keeps all from it; then closes these gates, each of
    /// which is held by a thread of the runtime while it works.
    pub fn hold<'a>(&self, gates: impl Iterator<Item = &'a Gate>) {
        if self.holds.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        self.is_closed.store(true, Ordering::SeqCst);
        self.wait_for_calls();
        gates.for_each(Gate::close);
    }

    /// Lets the threads work again.
    pub fn release<'a>(&self, gates: impl Iterator<Item = &'a Gate>) {
        self.is_forking.store(false, Ordering::SeqCst);
        if self.holds.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        self.is_closed.store(false, Ordering::SeqCst);
        gates.for_each(Gate::open);
    }

    /// In the child of a fork: nobody who lives here is in a call.
    pub fn reset(&self) {
        self.calls.store(0, Ordering::SeqCst);
        self.holds.store(1, Ordering::SeqCst);
    }
}

/// Held by a thread of the runtime while it works, or closed while a fork is under way.
#[derive(Default)]
pub struct Gate(AtomicBool);

impl Gate {
    /// Waits until it is open, and closes it.
    pub fn close(&self) {
        while self.0.swap(true, Ordering::Acquire) {
            thread::sleep(A_MOMENT);
        }
    }

    pub fn open(&self) {
        self.0.store(false, Ordering::Release);
    }
}
