//! Whether this process is a fork of the one that recorded: it has no writing thread.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of forks between this process and the one that watched first.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static HOOK: Once = Once::new();

/// A process, without its forks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessGeneration(u32);

impl ProcessGeneration {
    /// Returns that of this process.
    pub fn watch() -> ProcessGeneration {
        HOOK.call_once(|| {
            // SAFETY: the function is `extern "C"`, lives as long as the program, and does not unwind.
            unsafe {
                libc::pthread_atfork(None, None, Some(after));
            }
        });
        ProcessGeneration(GENERATION.load(Ordering::Relaxed))
    }

    /// Returns whether it is that of this process, rather than of one that has forked it.
    #[inline]
    pub fn is_this(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }
}

extern "C" fn after() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
