//! What tests set of the small engine: its compiler, its calls and its memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use gt_worker::engine::pausable::{CallResult, PausableCall};

use super::engine::Vector;

/// The compiler of [`Vectors`], by default there is none, and the time.
#[derive(Default)]
pub struct Compiler {
    /// How often a lane runs a plan before it is compiled.
    pub warmup: AtomicU32,
    /// Whether it is still at work.
    pub is_busy: AtomicBool,
    /// The microseconds that have passed while nothing was computed.
    pub idle: AtomicU64,
    /// Whether instructions are calls that can be paused.
    pub is_slow: AtomicBool,
    /// Whether calls reach no cut point.
    pub is_uncut: AtomicBool,
    /// Whether the calls in progress are complete, and how often one was paused and resumed.
    pub is_complete: AtomicBool,
    pub pauses: AtomicU32,
    pub resumptions: AtomicU32,
    /// Whether a slice of a whole vector is a view of it, and buffers are shared.
    pub makes_views: AtomicBool,
    /// Whether vectors are in the memory of a device.
    pub is_device: AtomicBool,
}

/// A call that is complete when the test says so.
pub struct SlowCall {
    pub compiler: Arc<Compiler>,
    pub is_stopped: bool,
    pub result: CallResult<Vector>,
}

impl PausableCall<Vector> for SlowCall {
    fn wait(&mut self, at_most: Duration) -> bool {
        assert!(!self.is_stopped, "nothing computes before it is resumed");
        if !at_most.is_zero() {
            self.compiler.idle.fetch_add(1000, Ordering::Relaxed);
        }
        self.compiler.is_complete.load(Ordering::Relaxed)
    }

    fn pause(&mut self, _at_most: Duration) -> bool {
        self.compiler.pauses.fetch_add(1, Ordering::Relaxed);
        self.is_stopped = true;
        !self.compiler.is_uncut.load(Ordering::Relaxed)
    }

    fn resume(&mut self) {
        self.compiler.resumptions.fetch_add(1, Ordering::Relaxed);
        self.is_stopped = false;
    }

    fn held(&self) -> u64 {
        800
    }

    fn finish(self: Box<Self>) -> CallResult<Vector> {
        self.result
    }
}
