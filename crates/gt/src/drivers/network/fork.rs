//! Fork safety of network sessions.
//!
//! The child cannot use its parent's connection, but must get an error when it tries. So no thread
//! may hold a session's stream lock at the moment of the fork: it would stay locked in the child,
//! where that thread does not exist.

use std::cell::RefCell;
use std::sync::{Once, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Read-locked by background threads that use a session's stream, write-locked by a forking thread.
static AT_STREAMS: RwLock<()> = RwLock::new(());
static HOOKS: Once = Once::new();

thread_local! {
    /// Held while this thread forks.
    static HELD: RefCell<Option<RwLockWriteGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Installs the fork hooks, once.
pub fn watch() {
    HOOKS.call_once(|| {
        // SAFETY: the functions are `extern "C"`, live as long as the program, and do not unwind.
        unsafe {
            libc::pthread_atfork(Some(before), Some(after), Some(after));
        }
    });
}

/// A guard: while it lives, forks wait.
pub fn visit() -> RwLockReadGuard<'static, ()> {
    AT_STREAMS.read().unwrap_or_else(PoisonError::into_inner)
}

extern "C" fn before() {
    HELD.set(Some(AT_STREAMS.write().unwrap_or_else(PoisonError::into_inner)));
}

extern "C" fn after() {
    HELD.set(None);
}
