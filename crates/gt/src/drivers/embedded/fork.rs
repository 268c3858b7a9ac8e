//! Fork safety of embedded runtimes, by `pthread_atfork` hooks.
//!
//! Only the forking thread exists in the child. So before a fork all threads of a runtime are
//! kept from work, so that none of their locks is held; afterwards the parent goes on, and the
//! child starts new threads on demand.

use std::sync::{Arc, Mutex, Once, Weak};

use super::runtime::Runtime;

static RUNTIMES: Mutex<Vec<Weak<Runtime>>> = Mutex::new(Vec::new());
static HOOKS: Once = Once::new();

/// Registers a runtime for the hooks.
pub fn watch(runtime: &Arc<Runtime>) {
    HOOKS.call_once(|| {
        // SAFETY: the three functions are `extern "C"`, live as long as the program, and do not
        // unwind: they touch only atomics and locks that no thread holds at that moment.
        unsafe {
            libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
        }
    });
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
    each(Runtime::hold);
}

/// Ends [`hold_all`].
pub fn release_all() {
    each(Runtime::release);
}

extern "C" fn before() {
    each(Runtime::hold);
    each(Runtime::settle);
}

extern "C" fn in_parent() {
    each(Runtime::release);
}

extern "C" fn in_child() {
    each(Runtime::after_fork);
}
