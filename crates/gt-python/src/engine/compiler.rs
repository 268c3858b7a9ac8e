//! The thread that compiles plans in the background, while they run operation by operation.
//!
//! There is one thread because compilers are not safe to use from several at once. The process must
//! not exit during a compilation: see [`super::watchdog::close_engines`].

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;

/// How long process exit waits for an interrupted compilation to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

type CompileJob = Box<dyn FnOnce() + Send>;

/// The compiler thread.
struct CompilerThread {
    queue: Sender<CompileJob>,
    /// The Python id of the thread while it compiles; 0 while it is idle, and [`STARTING`] until it
    /// knows its id.
    compiling: Arc<AtomicU64>,
    /// The process of the thread: after a fork, the child starts its own.
    process: u32,
}

const STARTING: u64 = u64::MAX;

static COMPILER: Mutex<Option<CompilerThread>> = Mutex::new(None);

fn lock() -> MutexGuard<'static, Option<CompilerThread>> {
    COMPILER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queues a job, starting the thread if needed; returns false if the thread cannot be started.
pub fn enqueue(job: CompileJob) -> bool {
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

/// Abandons a compilation that does not end: later jobs get a new thread.
pub fn abandon_thread() {
    *lock() = None;
}

fn work(jobs: &Receiver<CompileJob>, compiling: &AtomicU64) {
    while let Ok(job) = jobs.recv() {
        compiling.store(STARTING, Ordering::SeqCst);
        if super::watchdog::is_exiting() {
            return compiling.store(0, Ordering::SeqCst);
        }
        let thread = Python::attach(|py| {
            let number = py.import("threading")?.call_method0("get_ident")?.extract::<u64>();
            number.inspect(|number| compiling.store(*number, Ordering::SeqCst))
        });
        if thread.is_ok() && !super::watchdog::is_exiting() {
            job();
        }
        compiling.store(0, Ordering::SeqCst);
    }
}

/// Interrupts the running compilation with an exception, and waits until it has stopped.
pub fn stop() {
    let Some(CompilerThread { compiling, .. }) = lock().take() else { return };
    let (since, mut interrupted) = (Instant::now(), 0);
    while since.elapsed() < STOP_TIMEOUT {
        match compiling.load(Ordering::SeqCst) {
            0 => return,
            thread if thread != STARTING && thread != interrupted => {
                raise_exit(thread);
                interrupted = thread;
            }
            _ => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Raises SystemExit in a Python thread.
fn raise_exit(thread: u64) {
    Python::attach(|py| {
        let exit = py.get_type::<pyo3::exceptions::PySystemExit>();
        // SAFETY: the GIL is held, the thread id is Python's own, and the exception class is alive;
        // Python does nothing if the thread is gone.
        unsafe { ffi::PyThreadState_SetAsyncExc(thread as _, exit.as_ptr()) };
    });
}
