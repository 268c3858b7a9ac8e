//! The one thread in which plans are compiled while they are run plainly.
//!
//! Compilers are not made for several threads at once, and a process must not end while one is at
//! work: see [`super::watch::close_engines`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;

/// How long the end of the process waits for a compilation that is told to stop.
const LAST: Duration = Duration::from_secs(60);

type Job = Box<dyn FnOnce() + Send>;

/// The thread's queue, and the process that it is in: a child has no such thread.
static QUEUE: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);

/// Python's number of the thread while it compiles; 0 while it does not,
static COMPILING: AtomicU64 = AtomicU64::new(0);
/// and this before it knows its number.
const BEGINNING: u64 = u64::MAX;

/// Has the thread do something, after all else that it was given; false if there is no thread.
pub fn later(job: Job) -> bool {
    let mut queue = QUEUE.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    let job = match &*queue {
        Some((owner, sender)) if *owner == process => match sender.send(job) {
            Ok(()) => return true,
            Err(unsent) => unsent.0,
        },
        _ => job,
    };
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name("gt-compile".into()).spawn(move || work(&receiver));
    if thread.is_err() || sender.send(job).is_err() {
        return false;
    }
    *queue = Some((process, sender));
    true
}

/// Leaves a compilation that does not end to itself: what comes next gets another thread.
pub fn give_up() {
    *QUEUE.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn work(jobs: &Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        COMPILING.store(BEGINNING, Ordering::SeqCst);
        if super::watch::is_ending() {
            return COMPILING.store(0, Ordering::SeqCst);
        }
        let thread = Python::attach(|py| {
            let number = py.import("threading")?.call_method0("get_ident")?.extract::<u64>();
            number.inspect(|number| COMPILING.store(*number, Ordering::SeqCst))
        });
        if thread.is_ok() && !super::watch::is_ending() {
            job();
        }
        COMPILING.store(0, Ordering::SeqCst);
    }
}

/// Stops the compilation at work, and waits until it has: an exception is raised in its code.
pub fn stop() {
    give_up();
    let (since, mut told) = (Instant::now(), 0);
    while since.elapsed() < LAST {
        match COMPILING.load(Ordering::SeqCst) {
            0 => return,
            thread if thread != BEGINNING && thread != told => {
                raise_exit(thread);
                told = thread;
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
