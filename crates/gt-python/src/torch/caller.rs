//! What the threads of a backward pass take over from the thread that called for it: they run no code
//! of a user's that could say it.

use std::sync::atomic::{AtomicU64, Ordering};

use gt::signal::{self, Scope};
use pyo3::prelude::*;

use crate::source;

/// The signal, and that of its gradients, which a thread with code of a user's has computed under
/// last.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// Notes who issues what follows on this thread: the line, and the signal. Gradients are computed under
/// the signal for gradients of the scope that the backward pass is called in.
pub fn note(py: Python<'_>) {
    source::note(py);
    if source::is_foreign() {
        let latest = LATEST.load(Ordering::Relaxed);
        let (signal, backward) = ((latest >> 32) as u32, latest as u32);
        signal::follow(Scope { signal, backward, compiled: 0 });
    } else {
        let Scope { signal, backward, .. } = signal::current();
        LATEST.store(u64::from(signal) << 32 | u64::from(backward), Ordering::Relaxed);
    }
}
