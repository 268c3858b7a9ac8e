//! The one thread in which plans are compiled while they are run plainly.
//!
//! Compilers are not made for several threads at once, and a process must not end while one is at
//! work: see [`super::watchdog::close_engines`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;

/// How long the end of the process waits for a compilation that is interrupted to stop.
const LAST: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The thread.
struct CompilerThread {
    queue: Sender<Job>,
    /// Python's number of it while it compiles; 0 while it does not, and [`BEGINNING`] before it
    /// knows its number.
    compiling: Arc<AtomicU64>,
    /// The process that it is in: a child has no such thread.
    process: u32,
}

const BEGINNING: u64 = u64::MAX;

static COMPILER: Mutex<Option<CompilerThread>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<CompilerThread>> {
    COMPILER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the thread do something, after all else that it was given; false if there is no thread.
pub fn enqueue(job: Job) -> bool {
    let mut compiler = lock();
    let process = std::process::id();
    let job = match &*compiler {
        Some(known) if known.process == process => match known.queue.send(job) {
            Ok(()) => return true,
            Err(unsent) => unsent.0,
        },
        _ => job,
    };
    let (queue, jobs) = channel();
    let compiling = Arc::new(AtomicU64::new(0));
    let number = Arc::clone(&compiling);
    let thread =
        thread::Builder::new().name("gt-compile".into()).spawn(move || work(&jobs, &number));
    if thread.is_err() || queue.send(job).is_err() {
        return false;
    }
    *compiler = Some(CompilerThread { queue, compiling, process });
    true
}

/// Leaves a compilation that does not end to itself: what comes next gets another thread.
pub fn abandon_thread() {
    *lock() = None;
}

fn work(jobs: &Receiver<Job>, compiling: &AtomicU64) {
    while let Ok(job) = jobs.recv() {
        compiling.store(BEGINNING, Ordering::SeqCst);
        if super::watchdog::is_ending() {
            return compiling.store(0, Ordering::SeqCst);
        }
        let thread = Python::attach(|py| {
            let number = py.import("threading")?.call_method0("get_ident")?.extract::<u64>();
            number.inspect(|number| compiling.store(*number, Ordering::SeqCst))
        });
        if thread.is_ok() && !super::watchdog::is_ending() {
            job();
        }
        compiling.store(0, Ordering::SeqCst);
    }
}

/// Stops the compilation at work, and waits until it has: an exception is raised in its code.
pub fn stop() {
    let Some(CompilerThread { compiling, .. }) = lock().take() else { return };
    let (since, mut interrupted) = (Instant::now(), 0);
    while since.elapsed() < LAST {
        match compiling.load(Ordering::SeqCst) {
            0 => return,
            thread if thread != BEGINNING && thread != interrupted => {
                raise_exit(thread);
                interrupted = thread;
            }
            _ => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Raises SystemExit in a thread of Python's.
fn raise_exit(thread: u64) {
    Python::attach(|py| {
        let exit = py.get_type::<pyo3::exceptions::PySystemExit>();
        // SAFETY: Python's lock is held, the thread's number is Python's own, and the exception is
        // alive; Python does nothing if the thread is gone.
        unsafe { ffi::PyThreadState_SetAsyncExc(thread as _, exit.as_ptr()) };
    });
}
