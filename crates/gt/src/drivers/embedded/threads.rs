//! The threads of an embedded runtime: one per worker. The first also flushes the session.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use gt_engine_native::processor;

use super::forks::{self, Gate};
use super::handover::Parker;
use super::lock;
use super::runtime::Runtime;

/// How often a thread polls for work before it parks.
const SPINS: u32 = 5000;
/// How long it first parks at a time, so as to flush the session's buffer in between.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// After this many short sleeps without work it parks until it is unparked (deeply).
const SHORT_SLEEPS: u32 = 20;

/// The workers' threads.
pub struct WorkerThreads {
    handles: Mutex<Vec<JoinHandle<()>>>,
    are_started: AtomicBool,
    is_closing: AtomicBool,
    /// The processor of the last submission.
    issuer: AtomicI32,
    /// Whether there are more processors than workers.
    has_spare_cores: bool,
}

/// The part of a worker's thread that other threads access.
#[derive(Default)]
pub struct ThreadState {
    parker: Parker,
    /// Held while the thread works; see [`super::forks`].
    pub gate: Gate,
    /// Whether it is parked without a timeout that matters.
    is_deep: AtomicBool,
}

impl ThreadState {
    pub fn unpark(&self) {
        self.parker.unpark();
    }

    /// Unparks a deeply parked thread; any other polls by itself.
    pub fn unpark_if_deep(&self) {
        if self.is_deep.load(Ordering::SeqCst) {
            self.parker.unpark();
        }
    }

    pub fn after_fork(&self) {
        self.parker.reset();
        self.is_deep.store(false, Ordering::SeqCst);
    }
}

impl WorkerThreads {
    pub fn new(workers: usize) -> WorkerThreads {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        WorkerThreads {
            handles: Mutex::default(),
            are_started: AtomicBool::new(false),
            is_closing: AtomicBool::new(false),
            issuer: AtomicI32::new(-1),
            has_spare_cores: workers < cores,
        }
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Records this thread's processor as the issuer's.
    pub fn submitted_here(&self) {
        self.issuer.store(processor::current(), Ordering::Relaxed);
    }

    /// Starts the threads, if they are not.
    pub fn start(&self, runtime: &Arc<Runtime>) {
        if self.are_started.load(Ordering::Acquire) {
            return;
        }
        let mut handles = lock(&self.handles);
        if self.are_started.load(Ordering::Acquire) || self.is_closing() {
            return;
        }
        for index in 0..runtime.workers() {
            let driven = Arc::clone(runtime);
            let thread = thread::Builder::new()
                .name(format!("gt-worker-{index}"))
                .spawn(move || drive(&driven, index));
            match thread {
                Ok(thread) => handles.push(thread),
                // Threads that wait for a value then drive the cores themselves.
                Err(_) => break,
            }
        }
        self.are_started.store(!handles.is_empty(), Ordering::Release);
    }

    /// Lets no more work begin.
    pub fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// Waits until the threads have ended.
    pub fn join(&self) {
        // The lock is not held during the joins, as the process may fork.
        let handles = std::mem::take(&mut *lock(&self.handles));
        for thread in handles {
            // The last reference may be dropped on one of the threads.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }

    /// In the child of a fork: the threads do not exist, and are started again on demand.
    pub fn after_fork(&self) {
        for thread in std::mem::take(&mut *lock(&self.handles)) {
            std::mem::forget(thread);
        }
        self.are_started.store(false, Ordering::Release);
    }

    /// Moves this thread off the issuing thread's processor, if there are enough processors.
    fn leave_issuer(&self) {
        if self.has_spare_cores && processor::current() == self.issuer.load(Ordering::Relaxed) {
            processor::step_aside();
        }
    }
}

/// The main loop of a worker's thread.
fn drive(runtime: &Runtime, index: usize) {
    let (threads, state) = (&runtime.threads, runtime.thread(index));
    let (mut spins, mut sleeps) = (0, 0);
    let _inside = forks::stay_inside();
    state.gate.close();
    state.parker.register();
    state.gate.open();
    while !threads.is_closing() {
        state.gate.close();
        // After a short sleep, flush the session's buffer, too.
        if index == 0 && sleeps > 0 {
            runtime.client.flush();
            runtime.take_reports(false);
        }
        let worked = runtime.dispatch() | runtime.step(index);
        state.gate.open();
        if worked {
            (spins, sleeps) = (0, 0);
        } else if spins < SPINS {
            spins += 1;
            // The thread that produces work may need this processor.
            if spins % 64 == 0 {
                threads.leave_issuer();
                thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        } else if runtime.has_work(index) {
            // Another thread is working on it.
            thread::yield_now();
        } else {
            sleeps += 1;
            let is_deep = sleeps > SHORT_SLEEPS;
            state.is_deep.store(is_deep, Ordering::SeqCst);
            let limit = if is_deep { Duration::from_secs(3600) } else { SHORT_SLEEP };
            state.parker.park(limit, || {
                state.gate.close();
                let has_work = runtime.has_work(index)
                    || threads.is_closing()
                    || is_deep && runtime.client.has_waiting();
                state.gate.open();
                has_work
            });
            if is_deep {
                state.is_deep.store(false, Ordering::SeqCst);
                sleeps = 1;
            }
            threads.leave_issuer();
        }
    }
}
