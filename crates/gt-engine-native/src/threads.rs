//! The engine's own threads: none until a piece of work is worth them, none in the global pool.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Splits large work over threads. The calling thread takes part, so that there is one helper
/// less than threads, and none for one thread.
pub struct Threads {
    count: usize,
    helpers: Option<ThreadPool>,
}

impl Threads {
    pub fn new(count: usize) -> Threads {
        Threads { count: count.max(1), helpers: None }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Forgets the helpers, who do not exist in a forked child; they are made anew when needed.
    pub fn after_fork(&mut self) {
        std::mem::forget(self.helpers.take());
    }

    /// Calls `body` for each number below `pieces`, in any order and on any thread.
    pub fn for_each(&mut self, pieces: usize, body: impl Fn(usize) + Sync) {
        let wanted = self.count.min(pieces);
        if wanted < 2 || !self.start() {
            return (0..pieces).for_each(body);
        }
        let helpers = self.helpers.as_ref().expect("started above");
        let next = AtomicUsize::new(0);
        let work = || {
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= pieces {
                    break;
                }
                body(piece);
            }
        };
        helpers.in_place_scope(|scope| {
            for _ in 1..wanted {
                scope.spawn(|_| work());
            }
            work();
        });
    }

    /// Starts the helpers; where the system gives none, the caller works alone.
    fn start(&mut self) -> bool {
        if self.helpers.is_none() {
            self.helpers = ThreadPoolBuilder::new()
                .num_threads(self.count - 1)
                .thread_name(|index| format!("gt-native-{index}"))
                .build()
                .ok();
        }
        self.helpers.is_some()
    }
}

/// A pointer that several threads may use, each for a part of its own.
#[derive(Clone, Copy)]
pub struct Shared<T>(pub T);

// SAFETY: whoever makes one promises that the threads write disjoint parts.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T: Copy> Shared<T> {
    /// The pointer. A method, so that closures capture the whole and not the field.
    pub fn get(&self) -> T {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_piece_is_done_once_and_panics_come_back() {
        for count in [1, 2, 3] {
            let mut threads = Threads::new(count);
            let done: Vec<AtomicUsize> = (0..100).map(|_| AtomicUsize::new(0)).collect();
            threads.for_each(100, |piece| {
                done[piece].fetch_add(1, Ordering::Relaxed);
            });
            assert!(done.iter().all(|times| times.load(Ordering::Relaxed) == 1));
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                threads.for_each(10, |piece| assert!(piece != 7));
            }));
            assert!(panicked.is_err());
            threads.after_fork();
            threads.for_each(2, |_| {});
        }
    }

    #[test]
    fn one_thread_makes_no_pool() {
        let mut threads = Threads::new(1);
        threads.for_each(100, |_| {});
        assert!(threads.helpers.is_none());
    }
}
