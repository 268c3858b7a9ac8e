//! What happens around a fork.
//!
//! Only the forking thread lives on in the child. So nothing may be half done at that moment:
//! sessions are brought to a rest, and whoever is starting or ending one comes to an end of it
//! first.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gt::drivers::embedded::fork::is_in_engine;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::gil::with_gil;
use super::wait::detached;
use super::{current, exit};

/// How many threads are in the midst of a change, and how many are about to fork.
static CHANGING: AtomicUsize = AtomicUsize::new(0);
static FORKING: AtomicUsize = AtomicUsize::new(0);

const PAUSE: Duration = Duration::from_micros(50);

thread_local! {
    /// How many of [`ForkBlocker`] this thread has: it counts once.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// While this lives, other threads' forks wait: for who starts or ends a session, and for what
/// PyTorch asks of GT without Python's lock, which else keeps forks away.
pub struct ForkBlocker {
    /// It stays with its thread.
    _thread: PhantomData<*const ()>,
}

impl ForkBlocker {
    /// To open a session, which is refused at the end of the process.
    pub fn to_open(py: Python<'_>) -> PyResult<ForkBlocker> {
        exit::refuse(py)?;
        let blocker = ForkBlocker::new();
        if exit::is_exiting() {
            drop(blocker);
            return Err(exit::refusal(py));
        }
        Ok(blocker)
    }

    /// To end one, or for anything else; a thread that has one already does not wait.
    pub fn new() -> ForkBlocker {
        while DEPTH.get() == 0 {
            CHANGING.fetch_add(1, Ordering::SeqCst);
            if FORKING.load(Ordering::SeqCst) == 0 {
                break;
            }
            CHANGING.fetch_sub(1, Ordering::SeqCst);
            // The forking thread needs the lock, which this one may have.
            with_gil(|py| detached(py, || thread::sleep(PAUSE)));
        }
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        ForkBlocker { _thread: PhantomData }
    }
}

impl Drop for ForkBlocker {
    fn drop(&mut self) {
        let left = DEPTH.with(|depth| {
            depth.set(depth.get() - 1);
            depth.get()
        });
        if left == 0 {
            CHANGING.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Waits until no thread is in the midst of a change, but not for ever.
pub fn wait_for_changes(limit: Duration) {
    let since = Instant::now();
    while CHANGING.load(Ordering::SeqCst) > 0 && since.elapsed() < limit {
        thread::sleep(PAUSE);
    }
}

/// Before a fork sessions come to an end of what they do. Engines in Python need Python's lock for
/// it, which the forking thread holds when the runtimes' own hook comes.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    // An engine that forks within an operation is in the midst of what others wait for.
    if is_in_engine() {
        return;
    }
    let own = usize::from(DEPTH.get() > 0);
    // Until the fork is over, this thread waits for nobody: it may be in the midst of any Python
    // code.
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    FORKING.fetch_add(1, Ordering::SeqCst);
    py.detach(|| {
        while CHANGING.load(Ordering::SeqCst) > own {
            thread::sleep(PAUSE);
        }
        gt::drivers::embedded::fork::hold_all();
    });
}

#[pyfunction]
fn after_fork_in_parent(py: Python<'_>) {
    if is_in_engine() {
        return;
    }
    py.detach(gt::drivers::embedded::fork::release_all);
    FORKING.fetch_sub(1, Ordering::SeqCst);
    DEPTH.with(|depth| depth.set(depth.get() - 1));
}

#[pyfunction]
fn after_fork_in_child() {
    FORKING.store(0, Ordering::SeqCst);
    if !is_in_engine() {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
    // Other threads, which may have been about to wait for the fork, are not here.
    CHANGING.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
    // It is this thread now.
    current::become_main_thread();
}

/// Completes what pyo3 would do at a first use. It gives up Python's lock meanwhile, and a child
/// forked by another thread then would wait for ever for the thread that it does not have.
pub fn complete_first_uses(py: Python<'_>) -> PyResult<()> {
    let _looks_up_length_hint = PyTuple::empty(py).try_iter()?.size_hint();
    crate::source::last_instruction(py);
    crate::dtype::objects(py)?;
    let _makes_the_class = py.get_type::<crate::export::SharedValues>();
    crate::error::bad_index(py)?;
    Ok(())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(before_fork, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork_in_parent, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork_in_child, module)?)
}
