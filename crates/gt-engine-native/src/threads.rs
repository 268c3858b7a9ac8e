//! Parallel loops. The threads start with the first loop that is large enough.

use std::sync::Arc;

use crate::gate::PauseGate;
use crate::thread_pool::ThreadPool;

/// The number of ways in which the loops of a call that can be paused are split at least.
const CUTS: usize = 16;

/// Splits work over threads. The calling thread takes part, so there is one helper less than
/// threads.
pub struct Threads {
    count: usize,
    pool: Option<ThreadPool>,
    /// The gate between the pieces, of a call that can be paused.
    gate: Option<Arc<PauseGate>>,
}

impl Threads {
    /// Creates the loops of this many threads, at least one. No thread starts yet.
    pub fn new(count: usize) -> Threads {
        Threads { count: count.max(1), pool: None, gate: None }
    }

    /// As [`Threads::new`], with loops that stop at a gate. The calling thread is inside of it.
    #[cfg(test)]
    pub fn with_gate(count: usize, gate: Arc<PauseGate>) -> Threads {
        Threads { gate: Some(gate), ..Threads::new(count) }
    }

    /// Sets the gate at which loops stop. The calling thread is inside of it.
    pub fn set_gate(&mut self, gate: Option<Arc<PauseGate>>) {
        self.gate = gate;
    }

    /// Returns whether loops stop at a gate.
    pub fn have_gate(&self) -> bool {
        self.gate.is_some()
    }

    /// Returns the gate at which loops stop, if they do.
    pub fn gate(&self) -> Option<Arc<PauseGate>> {
        self.gate.clone()
    }

    /// Returns what a thread inside a loop calls where it can be paused.
    pub fn pass(&self) -> impl Fn() + use<> {
        let gate = self.gate();
        move || gate.iter().for_each(|gate| gate.pass())
    }

    /// Returns the number of ways in which a large loop is split: one for each thread, or more if it
    /// can be paused.
    pub fn ways(&self) -> usize {
        if self.have_gate() { self.count.max(CUTS) } else { self.count }
    }

    /// Returns the number of threads, the calling one included.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Drops the helpers, which do not exist in a forked child; they are started again when needed.
    pub fn after_fork(&mut self) {
        std::mem::forget(self.pool.take());
    }

    /// Calls `body` once for each number below `pieces`, in any order and on any thread.
    ///
    /// # Panics
    /// One of the calls panics, on any thread: the panic is resumed here, once no other call is
    /// running. Calls that have not started by then are skipped.
    #[inline]
    pub fn for_each(&mut self, pieces: usize, body: impl Fn(usize) + Sync) {
        self.run(pieces, &body);
    }

    /// Runs [`Threads::for_each`]. It is compiled once, for the hundreds of closures that kernels
    /// pass.
    fn run(&mut self, pieces: usize, body: &(dyn Fn(usize) + Sync)) {
        let gate = self.gate.as_deref();
        if self.count.min(pieces) < 2 {
            for piece in 0..pieces {
                if let Some(gate) = gate {
                    gate.pass();
                }
                body(piece);
            }
        } else {
            let pool = self.pool.get_or_insert_with(|| ThreadPool::new(self.count - 1));
            pool.run(pieces, gate, body);
        }
    }

    /// Calls `body` once for each part of `step` items, the last of which may be shorter, with the
    /// part's number.
    ///
    /// # Panics
    /// As [`Threads::for_each`]; `step` is 0.
    pub fn for_each_part<T: Send>(
        &mut self,
        items: &mut [T],
        step: usize,
        body: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let count = items.len();
        let first = SharedPtr::new(items.as_mut_ptr());
        self.for_each(count.div_ceil(step), |piece| {
            let start = piece * step;
            // SAFETY: the part is within `items`, which is borrowed until all calls have returned.
            // No two parts overlap, and `for_each` makes one call for each.
            let part = unsafe {
                std::slice::from_raw_parts_mut(first.get().add(start), step.min(count - start))
            };
            body(piece, part);
        });
    }
}

/// The address of memory that several threads work on, each on its own part. It grants no access by
/// itself: each `unsafe` block that dereferences it states why no other thread accesses the part.
#[derive(Clone, Copy)]
pub struct SharedPtr<T>(*mut T);

// SAFETY: an address alone reads and writes nothing, on any thread.
unsafe impl<T> Send for SharedPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for SharedPtr<T> {}

impl<T> SharedPtr<T> {
    pub fn new(address: *mut T) -> SharedPtr<T> {
        SharedPtr(address)
    }

    /// Returns the address. It is a method so that closures capture the whole struct and not the
    /// field.
    pub fn get(&self) -> *mut T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn every_piece_runs_once() {
        for count in [1, 2, 3, 8] {
            let mut threads = Threads::new(count);
            for round in 0..2000 {
                let pieces = round % 7;
                let done: Vec<AtomicUsize> = (0..pieces).map(|_| AtomicUsize::new(0)).collect();
                threads.for_each(pieces, |piece| {
                    done[piece].fetch_add(1, Ordering::Relaxed);
                });
                assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1));
                if round % 500 == 0 {
                    // Long enough for the helpers to fall asleep.
                    std::thread::sleep(std::time::Duration::from_millis(2));
                }
            }
        }
    }

    #[test]
    fn helpers_take_part() {
        let mut threads = Threads::new(2);
        let both = std::sync::Barrier::new(2);
        // Each piece waits for the other, which one thread alone never could.
        threads.for_each(2, |_| {
            both.wait();
        });
    }

    #[test]
    fn panics_propagate_and_leave_the_threads_usable() {
        let mut threads = Threads::new(3);
        for bad in [0, 3, 9] {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                threads.for_each(10, |piece| assert!(piece != bad));
            }));
            assert!(panicked.is_err());
            threads.for_each(10, |_| {});
        }
    }

    /// Makes the caller and one helper run a piece at the same time, and panic as requested;
    /// returns the message of the panic that is resumed.
    fn panics(threads: &mut Threads, caller: bool, helper: bool) -> Option<String> {
        let own = std::thread::current().id();
        let both = std::sync::Barrier::new(2);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            threads.for_each(2, |_| {
                both.wait();
                if std::thread::current().id() == own {
                    assert!(!caller, "on the caller");
                } else {
                    assert!(!helper, "on the helper");
                }
            });
        }));
        panicked
            .err()
            .map(|panic| panic.downcast_ref::<&str>().expect("the payload is a string").to_string())
    }

    #[test]
    fn a_panic_surfaces_only_in_the_caller_that_submitted_the_job() {
        let mut threads = Threads::new(2);
        for _ in 0..20 {
            let on_helper = panics(&mut threads, false, true);
            assert_eq!(on_helper.as_deref(), Some("on the helper"));
            assert_eq!(panics(&mut threads, false, false), None);
            let on_caller = panics(&mut threads, true, false);
            assert_eq!(on_caller.as_deref(), Some("on the caller"));
            assert_eq!(panics(&mut threads, false, false), None);
            // Of two panics one is resumed; the other is not resumed later.
            assert!(panics(&mut threads, true, true).is_some());
            assert_eq!(panics(&mut threads, false, false), None);
        }
    }

    #[test]
    fn the_pool_completes_the_next_job_after_all_helpers_panicked() {
        let mut threads = Threads::new(4);
        for _ in 0..50 {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                threads.for_each(100, |piece| panic!("piece {piece}"));
            }));
            let panic = panicked.expect_err("every piece panics");
            assert!(
                panic
                    .downcast_ref::<String>()
                    .expect("the payload is a string")
                    .starts_with("piece ")
            );
            let mut items = [0usize; 1000];
            threads.for_each_part(&mut items, 7, |piece, part| part.fill(piece + 1));
            assert!(items.iter().enumerate().all(|(index, item)| *item == index / 7 + 1));
        }
    }

    #[test]
    fn one_thread_or_one_piece_starts_no_helpers() {
        let mut threads = Threads::new(1);
        threads.for_each(100, |_| {});
        assert!(threads.pool.is_none());
        let mut threads = Threads::new(4);
        threads.for_each(1, |_| {});
        assert!(threads.pool.is_none());
        threads.for_each(2, |_| {});
        threads.after_fork();
        assert!(threads.pool.is_none());
        threads.for_each(2, |_| {});
    }
}
