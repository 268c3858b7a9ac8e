//! A pool of helper threads that join the work of the engine's caller.
//!
//! A general-purpose thread pool takes tens of microseconds to wake up, as long as a layer of a
//! small network takes to compute. Here the caller never waits for a helper to wake: it works
//! itself, helpers join while pieces are left, and a helper that is late finds the job closed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{JoinHandle, Thread};

use crate::budget::{self, Budget};
use crate::gate::PauseGate;
use crate::processor;

/// How often a helper polls for another job before it sleeps: some 300 microseconds, as long as a
/// step of a small network. If it slept sooner, it would often wake on the caller's processor.
const SPINS: u32 = 6000;

/// Polls, some 15 microseconds, after which a helper checks whether it occupies a processor that
/// another thread needs.
const SPINS_PER_CHECK: u32 = 300;

/// How often the caller polls for helpers to leave before it sleeps: some 20 microseconds.
const CALLER_SPINS: u32 = 400;

/// The helper threads of an engine.
pub struct ThreadPool {
    board: Arc<JobBoard>,
    helpers: Vec<Helper>,
}

struct Helper {
    thread: Thread,
    handle: Option<JoinHandle<()>>,
    sleeps: Arc<AtomicBool>,
}

/// The current job, shared by the caller and the helpers.
#[derive(Default)]
struct JobBoard {
    /// Bit 0 is [`OPEN`] while helpers may join; bits 1 to 15 count the helpers in the job; the
    /// bits above are the job's number.
    state: AtomicU64,
    job: AtomicPtr<PoolJob<'static>>,
    shuts_down: AtomicBool,
    /// The processor of the thread that submitted the job.
    caller: AtomicI32,
    /// The first panic of a helper in the job.
    panic: Mutex<Option<Panic>>,
    /// Whether the caller sleeps until the last helper has left the job.
    caller_waits: Mutex<bool>,
    all_left: Condvar,
}

/// The payload of a panic.
type Panic = Box<dyn Any + Send>;

const OPEN: u64 = 1;
const ONE_HELPER: u64 = 2;
const HELPERS: u64 = 0xfffe;
const ONE_JOB: u64 = 0x1_0000;

struct PoolJob<'a> {
    body: &'a (dyn Fn(usize) + Sync),
    pieces: usize,
    next: AtomicUsize,
    /// The budget that the caller allocates from.
    budget: Option<&'static Budget>,
    /// The gate between the pieces, if the job can be paused.
    gate: Option<&'a PauseGate>,
}

impl PoolJob<'_> {
    /// Runs pieces until none are left, or one panics: then no thread starts another.
    fn work(&self) -> Result<(), Panic> {
        let done = catch_unwind(AssertUnwindSafe(|| {
            loop {
                // Each number is taken once.
                let piece = self.next.fetch_add(1, Ordering::Relaxed);
                if piece >= self.pieces {
                    return;
                }
                let _inside = self.gate.map(Inside::new);
                (self.body)(piece);
            }
        }));
        if done.is_err() {
            self.next.fetch_max(self.pieces, Ordering::Relaxed);
        }
        done
    }
}

/// A thread inside a gate, which it leaves when this is dropped.
struct Inside<'a>(&'a PauseGate);

impl Inside<'_> {
    fn new(gate: &PauseGate) -> Inside<'_> {
        gate.enter();
        Inside(gate)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl ThreadPool {
    /// Starts up to `count` helpers, as many as the system allows.
    pub fn new(count: usize) -> ThreadPool {
        let board = Arc::new(JobBoard::default());
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
        ThreadPool { board, helpers }
    }

    /// Calls `body` once for each number below `pieces`, on this thread and the helpers. A panic of
    /// one of the calls is resumed here. The pool runs one job at a time, so this takes `&mut
    /// self`. All threads stop at the gate between pieces, if there is one; the calling thread is
    /// inside of it.
    pub fn run(&mut self, pieces: usize, gate: Option<&PauseGate>, body: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let job = PoolJob { body, pieces, next, budget: budget::current(), gate };
        let board = &self.board;
        board.caller.store(processor::current(), Ordering::Relaxed);
        board.job.store(std::ptr::from_ref(&job).cast_mut().cast(), Ordering::Relaxed);
        // No helper is in the previous job any more, so there are none to count.
        let number = board.state.load(Ordering::Relaxed) & !(OPEN | HELPERS);
        board.state.store(number.wrapping_add(ONE_JOB) | OPEN, Ordering::SeqCst);
        // The guard closes the job before it goes out of scope, even if the caller's work panics.
        let close_guard = CloseGuard(board);
        for helper in self.helpers.iter().take(pieces.saturating_sub(1)) {
            if helper.sleeps.load(Ordering::SeqCst) {
                helper.thread.unpark();
            }
        }
        if let Some(gate) = gate {
            gate.leave();
        }
        let own = job.work();
        drop(close_guard);
        // Taken in any case, so that no later job reports it.
        let panic = board.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = own.err().or(panic) {
            resume_unwind(panic);
        }
        if let Some(gate) = gate {
            gate.enter();
        }
    }
}

/// Leaves the job when dropped.
struct LeaveGuard<'a>(&'a JobBoard);

impl Drop for LeaveGuard<'_> {
    fn drop(&mut self) {
        let before = self.0.state.fetch_sub(ONE_HELPER, Ordering::AcqRel);
        let is_last_of_closed = before & (OPEN | HELPERS) == ONE_HELPER;
        if is_last_of_closed && *self.0.caller_waits.lock().unwrap_or_else(PoisonError::into_inner)
        {
            self.0.all_left.notify_one();
        }
    }
}

/// Closes the job when dropped, and waits for the helpers in it.
struct CloseGuard<'a>(&'a JobBoard);

impl Drop for CloseGuard<'_> {
    fn drop(&mut self) {
        self.0.state.fetch_and(!OPEN, Ordering::AcqRel);
        let has_helpers = || self.0.state.load(Ordering::Acquire) & HELPERS != 0;
        let mut spins = 0;
        while spins < CALLER_SPINS && has_helpers() {
            spins += 1;
            std::hint::spin_loop();
        }
        if has_helpers() {
            // A helper may need this very processor, so sleep.
            let mut caller_waits =
                self.0.caller_waits.lock().unwrap_or_else(PoisonError::into_inner);
            *caller_waits = true;
            while has_helpers() {
                caller_waits =
                    self.0.all_left.wait(caller_waits).unwrap_or_else(PoisonError::into_inner);
            }
            *caller_waits = false;
        }
    }
}

impl JobBoard {
    /// Runs a helper until the pool shuts down.
    fn help(&self, sleeps: &AtomicBool) {
        let mut done = 0;
        let mut spins = 0;
        while !self.shuts_down.load(Ordering::Acquire) {
            if let Some(number) = self.join(done) {
                let leave_guard = LeaveGuard(self);
                // SAFETY: the job was open when this helper joined it, and its address was stored
                // before it was opened. The caller keeps it alive until it is closed and all
                // helpers that joined have left, which this one does below.
                let job = unsafe { &*self.job.load(Ordering::Relaxed) };
                budget::enter(job.budget);
                let worked = job.work();
                budget::enter(None);
                if let Err(panic) = worked {
                    let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(panic);
                }
                drop(leave_guard);
                (done, spins) = (number, 0);
            } else if spins < SPINS {
                spins += 1;
                std::hint::spin_loop();
                if spins % SPINS_PER_CHECK == 0 {
                    self.leave_to_caller();
                    // Other threads that are ready to run go first.
                    std::thread::yield_now();
                }
            } else {
                sleeps.store(true, Ordering::SeqCst);
                // A job submitted before the line above is seen here; one submitted after it
                // unparks this thread.
                if !self.is_open(done) && !self.shuts_down.load(Ordering::SeqCst) {
                    std::thread::park();
                }
                self.leave_to_caller();
                sleeps.store(false, Ordering::SeqCst);
                spins = 0;
            }
        }
    }

    /// Moves away from the caller's processor. A helper only takes time from the caller there:
    /// while it polls, no job is submitted.
    fn leave_to_caller(&self) {
        if processor::current() == self.caller.load(Ordering::Relaxed) {
            processor::step_aside();
        }
    }

    fn is_open(&self, done: u64) -> bool {
        let state = self.state.load(Ordering::SeqCst);
        state & OPEN != 0 && state & !(OPEN | HELPERS) != done
    }

    /// Joins an open job other than number `done`; returns its number.
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

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.board.shuts_down.store(true, Ordering::SeqCst);
        for helper in &mut self.helpers {
            helper.thread.unpark();
            if let Some(handle) = helper.handle.take() {
                // A helper catches the panics of its jobs, so it ends normally.
                let _ = handle.join();
            }
        }
    }
}
