//! Forks of the process.
//!
//! Only the forking thread exists in the child, so no other thread may hold a lock or be in the
//! middle of a change at that moment. A fork waits until sessions are quiescent, and until threads
//! that open or close one have finished.

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

/// The number of threads with a [`ForkBlocker`], and the number of threads that are about to fork.
static CHANGING: AtomicUsize = AtomicUsize::new(0);
static FORKING: AtomicUsize = AtomicUsize::new(0);

const PAUSE: Duration = Duration::from_micros(50);

thread_local! {
    /// How many [`ForkBlocker`]s this thread has; it is counted once.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// While this guard lives, forks by other threads wait. It protects the opening and closing of
/// sessions, and PyTorch's calls into GT without the GIL, which otherwise prevents forks.
pub struct ForkBlocker {
    /// Not `Send`: the guard belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl ForkBlocker {
    /// Blocks forks while a session is opened.
    ///
    /// # Errors
    /// The process is exiting.
    pub fn to_open(py: Python<'_>) -> PyResult<ForkBlocker> {
        exit::refuse(py)?;
        let blocker = ForkBlocker::new();
        if exit::is_exiting() {
            drop(blocker);
            return Err(exit::refusal(py));
        }
        Ok(blocker)
    }

    /// Blocks forks; waits for a fork in progress, unless this thread has a guard already.
    pub fn new() -> ForkBlocker {
        while DEPTH.get() == 0 {
            CHANGING.fetch_add(1, Ordering::SeqCst);
            if FORKING.load(Ordering::SeqCst) == 0 {
                break;
            }
            CHANGING.fetch_sub(1, Ordering::SeqCst);
            // The forking thread needs the GIL, which this one may hold.
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

/// Waits until no thread has a [`ForkBlocker`], at most for `limit`.
pub fn wait_for_changes(limit: Duration) {
    let since = Instant::now();
    while CHANGING.load(Ordering::SeqCst) > 0 && since.elapsed() < limit {
        thread::sleep(PAUSE);
    }
}

/// Wait before a fork until all sessions are quiescent.
///
/// This hook releases the GIL, which Python engines need to finish; the forking thread holds it
/// when the hook of the Rust runtime runs.
#[pyfunction]
fn before_fork(py: Python<'_>) {
    // An engine that forks during an operation would wait for itself.
    if is_in_engine() {
        return;
    }
    let own = usize::from(DEPTH.get() > 0);
    // Until the fork is done, this thread must not wait in `ForkBlocker::new`: it may run any
    // Python code meanwhile.
    DEPTH.with(|depth| depth.set(depth.get() + 1));
    FORKING.fetch_add(1, Ordering::SeqCst);
    py.detach(|| {
        while CHANGING.load(Ordering::SeqCst) > own {
            thread::sleep(PAUSE);
        }
        gt::drivers::embedded::fork::hold_all();
    });
}

/// Resume the sessions of the parent after a fork.
#[pyfunction]
fn after_fork_in_parent(py: Python<'_>) {
    if is_in_engine() {
        return;
    }
    py.detach(gt::drivers::embedded::fork::release_all);
    FORKING.fetch_sub(1, Ordering::SeqCst);
    DEPTH.with(|depth| depth.set(depth.get() - 1));
}

/// Reset the state of the child after a fork, and make the forking thread its main thread.
#[pyfunction]
fn after_fork_in_child() {
    FORKING.store(0, Ordering::SeqCst);
    if !is_in_engine() {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
    // Other threads, which may have waited for the fork, do not exist in the child.
    CHANGING.store(usize::from(DEPTH.get() > 0), Ordering::SeqCst);
    current::become_main_thread();
}

/// Completes initializations that PyO3 would do at first use. PyO3 releases the GIL during them; if
/// another thread forked at that moment, the child would wait for ever for a thread that it does
/// not have.
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
