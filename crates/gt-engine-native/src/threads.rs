//! The engine's own threads: none until a piece of work is worth them.
//!
//! A thread pool for general use takes tens of microseconds to wake up, as long as a layer of a
//! small network takes to compute. Here the caller never waits for a helper to wake: it works
//! itself, helpers join while there is work left, and one that comes late finds the job closed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

use crate::processor;

/// How often a helper looks for another job before it sleeps: some 300 microseconds, as long as a
/// step of a small network takes. Sleeping sooner, it often wakes on the processor of the caller.
const LOOKS: u32 = 6000;

/// Splits large work over threads. The calling thread takes part, so that there is one helper
/// less than threads, and none for one thread.
pub struct Threads {
    count: usize,
    crew: Option<Crew>,
}

impl Threads {
    pub fn new(count: usize) -> Threads {
        Threads { count: count.max(1), crew: None }
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// Forgets the helpers, who do not exist in a forked child; they are made anew when needed.
    pub fn after_fork(&mut self) {
        std::mem::forget(self.crew.take());
    }

    /// Calls `body` for each number below `pieces`, in any order and on any thread.
    pub fn for_each(&mut self, pieces: usize, body: impl Fn(usize) + Sync) {
        if self.count.min(pieces) < 2 {
            return (0..pieces).for_each(body);
        }
        self.crew.get_or_insert_with(|| Crew::new(self.count - 1)).run(pieces, &body);
    }
}

/// The helpers.
struct Crew {
    board: Arc<Board>,
    helpers: Vec<Helper>,
}

struct Helper {
    thread: Thread,
    handle: Option<JoinHandle<()>>,
    sleeps: Arc<AtomicBool>,
}

/// Where the caller puts a job up and helpers find it.
#[derive(Default)]
struct Board {
    /// [`OPEN`] while helpers may join; how many are at it; above, the number of the job.
    state: AtomicU64,
    job: AtomicPtr<Job<'static>>,
    quits: AtomicBool,
    /// The processor of who put the job up.
    caller: AtomicI32,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

const OPEN: u64 = 1;
const ONE_HELPER: u64 = 2;
const HELPERS: u64 = 0xfffe;
const ONE_JOB: u64 = 0x1_0000;

struct Job<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    pieces: usize,
    next: AtomicUsize,
}

impl Job<'_> {
    fn work(&self) {
        loop {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= self.pieces {
                return;
            }
            (self.body)(piece);
        }
    }
}

impl Crew {
    /// As many helpers as the system gives, at most `count`.
    fn new(count: usize) -> Crew {
        let board = Arc::new(Board::default());
        let start = |index: usize| {
            let (board, sleeps) = (Arc::clone(&board), Arc::new(AtomicBool::new(false)));
            let own = Arc::clone(&sleeps);
            let handle = std::thread::Builder::new()
                .name(format!("gt-native-{index}"))
                .spawn(move || board.help(&own))
                .ok()?;
            Some(Helper { thread: handle.thread().clone(), handle: Some(handle), sleeps })
        };
        let helpers = (0..count.min(1024)).map_while(start).collect();
        Crew { board, helpers }
    }

    fn run(&self, pieces: usize, body: &(dyn Fn(usize) + Sync)) {
        let job = Job { body, pieces, next: AtomicUsize::new(0) };
        let board = &self.board;
        board.caller.store(processor::current(), Ordering::Relaxed);
        board.job.store(std::ptr::from_ref(&job).cast_mut().cast(), Ordering::Relaxed);
        // Nobody is at the last job any more, so that there are no helpers to count.
        let number = board.state.load(Ordering::Relaxed) & !(OPEN | HELPERS);
        board.state.store(number.wrapping_add(ONE_JOB) | OPEN, Ordering::SeqCst);
        // Should the caller's own part panic, the job still ends before it is gone.
        let closing = Closing(board);
        for helper in self.helpers.iter().take(pieces - 1) {
            if helper.sleeps.load(Ordering::SeqCst) {
                helper.thread.unpark();
            }
        }
        job.work();
        drop(closing);
        let panic = board.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

/// Closes the job when dropped, and waits for those still at it.
struct Closing<'a>(&'a Board);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::AcqRel);
        let mut looks = 0u32;
        while self.0.state.load(Ordering::Acquire) & HELPERS != 0 {
            looks += 1;
            // A helper may need this very processor.
            if looks.is_multiple_of(256) {
                std::thread::yield_now()
            } else {
                std::hint::spin_loop()
            }
        }
    }
}

impl Board {
    /// A helper's life.
    fn help(&self, sleeps: &AtomicBool) {
        let mut done = 0;
        let mut looks = 0;
        while !self.quits.load(Ordering::Acquire) {
            if let Some(number) = self.join(done) {
                // SAFETY: the caller keeps the job until it is closed and all helpers have left,
                // which this one does below.
                let job = unsafe { &*self.job.load(Ordering::Relaxed) };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| job.work())) {
                    *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
                }
                self.state.fetch_sub(ONE_HELPER, Ordering::AcqRel);
                (done, looks) = (number, 0);
            } else if looks < LOOKS {
                looks += 1;
                std::hint::spin_loop();
            } else {
                sleeps.store(true, Ordering::SeqCst);
                // A job put up before the line above is seen here, one after it wakes us.
                if !self.is_open(done) && !self.quits.load(Ordering::SeqCst) {
                    std::thread::park();
                }
                if processor::current() == self.caller.load(Ordering::Relaxed) {
                    processor::step_aside();
                }
                sleeps.store(false, Ordering::SeqCst);
                looks = 0;
            }
        }
    }

    fn is_open(&self, done: u64) -> bool {
        let state = self.state.load(Ordering::SeqCst);
        state & OPEN != 0 && state & !(OPEN | HELPERS) != done
    }

    /// Joins an open job other than number `done`; gives its number.
    fn join(&self, done: u64) -> Option<u64> {
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let number = state & !(OPEN | HELPERS);
            if state & OPEN == 0 || number == done {
                return None;
            }
            let joined = state + ONE_HELPER;
            match self.state.compare_exchange_weak(
                state,
                joined,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(number),
                Err(now) => state = now,
            }
        }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.board.quits.store(true, Ordering::SeqCst);
        for helper in &mut self.helpers {
            helper.thread.unpark();
            if let Some(handle) = helper.handle.take() {
                // A helper catches its panics; it ends in order.
                let _ = handle.join();
            }
        }
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
    fn every_piece_is_done_once() {
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
    fn panics_come_back_and_leave_the_threads_usable() {
        let mut threads = Threads::new(3);
        for bad in [0, 3, 9] {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                threads.for_each(10, |piece| assert!(piece != bad));
            }));
            assert!(panicked.is_err());
            threads.for_each(10, |_| {});
        }
    }

    #[test]
    fn one_thread_and_one_piece_make_no_helpers() {
        let mut threads = Threads::new(1);
        threads.for_each(100, |_| {});
        assert!(threads.crew.is_none());
        let mut threads = Threads::new(4);
        threads.for_each(1, |_| {});
        assert!(threads.crew.is_none());
        threads.for_each(2, |_| {});
        threads.after_fork();
        assert!(threads.crew.is_none());
        threads.for_each(2, |_| {});
    }
}
