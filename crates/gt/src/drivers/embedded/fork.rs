//! Fork safety of embedded runtimes, by `pthread_atfork` hooks.
//!
//! Only the forking thread exists in the child. So before a fork all threads of a runtime stop
//! working, and hold none of its locks; afterwards the parent continues, and the child starts new
//! threads on demand.
//!
//! A fork by an engine itself, from within an operation, does not wait: the runtime is in the
//! midst of its work. Its copy in the child ends once it leaves the engine ([`InEngine`]).

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, Weak};

use super::runtime::Runtime;

static RUNTIMES: Mutex<Vec<Weak<Runtime>>> = Mutex::new(Vec::new());
static HOOKS: Once = Once::new();

/// Whether this process is a copy that an engine has made by forking.
static IS_COPY: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// How many of [`InEngine`] this thread has.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// While this lives, its thread runs an engine's code, and a fork is that one's own. In the child
/// such a fork has made, the process ends with it: there is no runtime to go back to.
pub struct InEngine {
    /// It stays with its thread.
    _thread: PhantomData<*const ()>,
}

impl InEngine {
    pub fn enter() -> InEngine {
        register();
        DEPTH.with(|depth| depth.set(depth.get() + 1));
        InEngine { _thread: PhantomData }
    }
}

impl Drop for InEngine {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
        if DEPTH.get() == 0 && IS_COPY.load(Ordering::Relaxed) {
            // SAFETY: it may be called anywhere, and does not come back.
            unsafe { libc::_exit(0) };
        }
    }
}

/// Whether this thread runs an engine's code.
pub fn is_in_engine() -> bool {
    DEPTH.get() > 0
}

fn register() {
    HOOKS.call_once(|| {
        // SAFETY: the three functions are `extern "C"`, live as long as the program, and do not
        // unwind: they touch only atomics and locks that no thread holds at that moment.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        }
    });
}

/// Registers a runtime for the hooks.
pub fn watch(runtime: &Arc<Runtime>) {
    register();
    let mut runtimes = lock();
    runtimes.retain(|runtime| runtime.strong_count() > 0);
    runtimes.push(Arc::downgrade(runtime));
}

fn lock() -> std::sync::MutexGuard<'static, Vec<Weak<Runtime>>> {
    RUNTIMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn each(act: impl Fn(&Runtime)) {
    let runtimes: Vec<_> = lock().iter().filter_map(Weak::upgrade).collect();
    runtimes.iter().for_each(|runtime| act(runtime));
}

/// Stops work in all runtimes, as before a fork. For callers that will hold a lock which the
/// runtimes' engines need, and must not hold it yet.
pub fn hold_all() {
    if !is_in_engine() {
        each(Runtime::hold);
    }
}

/// Ends [`hold_all`].
pub fn release_all() {
    if !is_in_engine() {
        each(Runtime::release);
    }
}

extern "C" fn before() {
    if !is_in_engine() {
        each(Runtime::hold);
        each(Runtime::settle);
    }
}

extern "C" fn in_parent() {
    release_all();
}

extern "C" fn in_child() {
    if is_in_engine() {
        IS_COPY.store(true, Ordering::Relaxed);
    } else {
        each(Runtime::after_fork);
    }
}
