//! A running `vmap`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gt_ir::TensorId;

/// How random numbers are drawn within a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Randomness {
    /// Drawing random numbers is an error.
    Error,
    /// All samples have the same numbers.
    Same,
    /// Each sample has its own numbers.
    Different,
}

impl Randomness {
    /// Returns the flag with this name.
    pub fn from_name(name: &str) -> Option<Randomness> {
        Some(match name {
            "error" => Randomness::Error,
            "same" => Randomness::Same,
            "different" => Randomness::Different,
            _ => return None,
        })
    }
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// A `vmap` that runs, or has run.
pub struct Level {
    /// Inner levels have larger numbers.
    pub(crate) number: u64,
    pub(crate) size: usize,
    pub(crate) randomness: Randomness,
    is_over: AtomicBool,
    /// The number of its session.
    pub(crate) session: u64,
    /// Tensors of the session with a smaller id are older than the level.
    pub(crate) first: TensorId,
}

impl Level {
    pub(crate) fn new(session: u64, first: TensorId, size: usize, randomness: Randomness) -> Level {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Level { number, size, randomness, is_over: AtomicBool::new(false), session, first }
    }

    /// Returns whether the `vmap` has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
