//! Locks that keep threads out of a runtime while its process forks.
//!
//! User threads register their calls with a [`ForkGuard`]; a runtime's own threads hold a [`Gate`]
//! each while they work. Before a fork all calls must end, and all gates are closed.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const A_MOMENT: Duration = Duration::from_micros(50);

/// Counts the user threads in calls, and keeps others out while a fork is in progress.
#[derive(Default)]
pub struct ForkGuard {
    /// The user threads that are in calls.
    calls: AtomicUsize,
    /// Whether new calls wait.
    is_closed: AtomicBool,
    /// How many holders keep it closed.
    holds: AtomicUsize,
    /// The fork is next: the forking thread already holds the interpreter's locks, if any.
    is_forking: AtomicBool,
}

thread_local! {
    /// The nesting depth of this thread's calls: a fork waits for the outermost.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A call in progress: while it lives, a fork waits.
pub struct InFlightCall<'a> {
    /// `None` in a nested call.
    guard: Option<&'a ForkGuard>,
    _inside: CallGuard,
}

impl Drop for InFlightCall<'_> {
    fn drop(&mut self) {
        if let Some(guard) = self.guard {
            guard.calls.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Marks this thread as in a call, or guarded by a [`Gate`].
pub struct CallGuard(());

/// Exempts this thread's calls from waiting for forks, as a [`Gate`] guards it.
pub fn stay_inside() -> CallGuard {
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    CallGuard(())
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}

impl ForkGuard {
    /// Begins a call of a user thread, which must be able to wait (without Python's GIL). Waits
    /// while a fork is in progress, except in a nested call, for which the fork waits.
    pub fn enter(&self) -> InFlightCall<'_> {
        self.enter_unless(&self.is_closed)
    }

    /// As [`ForkGuard::enter`], for a thread that must not wait; `None` while a fork is in progress.
    pub fn try_enter(&self) -> Option<InFlightCall<'_>> {
        self.try_enter_unless(&self.is_closed)
    }

    fn try_enter_unless(&self, is_closed: &AtomicBool) -> Option<InFlightCall<'_>> {
        if DEPTH.get() > 0 {
            return Some(InFlightCall { guard: None, _inside: stay_inside() });
        }
        self.calls.fetch_add(1, Ordering::SeqCst);
        if !is_closed.load(Ordering::SeqCst) {
            return Some(InFlightCall { guard: Some(self), _inside: stay_inside() });
        }
        self.calls.fetch_sub(1, Ordering::SeqCst);
        None
    }

    fn enter_unless(&self, is_closed: &AtomicBool) -> InFlightCall<'_> {
        loop {
            if let Some(call) = self.try_enter_unless(is_closed) {
                return call;
            }
            thread::sleep(A_MOMENT);
        }
    }

    /// Begins a short call that computes nothing. It waits only in the last phase of a fork: before
    /// that, this thread may hold a lock that the forking thread needs.
    pub fn enter_briefly(&self) -> InFlightCall<'_> {
        self.enter_unless(&self.is_forking)
    }

    /// The last phase of a fork: waits for short calls, too.
    pub fn settle(&self) {
        self.is_forking.store(true, Ordering::SeqCst);
        self.wait_for_calls();
    }

    fn wait_for_calls(&self) {
        while self.calls.load(Ordering::SeqCst) > 0 {
            thread::sleep(A_MOMENT);
        }
    }

    /// Blocks new calls and waits for those in progress; then closes the gates of the runtime's
    /// threads.
    pub fn hold<'a>(&self, gates: impl Iterator<Item = &'a Gate>) {
        if self.holds.fetch_add(1, Ordering::SeqCst) > 0 {
            return;
        }
        self.is_closed.store(true, Ordering::SeqCst);
        self.wait_for_calls();
        gates.for_each(Gate::close);
    }

    /// Ends a hold.
    pub fn release<'a>(&self, gates: impl Iterator<Item = &'a Gate>) {
        self.is_forking.store(false, Ordering::SeqCst);
        if self.holds.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        self.is_closed.store(false, Ordering::SeqCst);
        gates.for_each(Gate::open);
    }

    /// In the child of a fork: no thread that exists is in a call.
    pub fn reset(&self) {
        self.calls.store(0, Ordering::SeqCst);
        self.holds.store(1, Ordering::SeqCst);
    }
}

/// A spin lock that a thread of the runtime holds while it works, and a fork while in progress.
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
