//! Operations that have failed.

use crate::instruction::SourceId;
use crate::record;
use crate::standing::{Holding, Other};

/// A failed operation: what failed, why, on which worker, and from which line.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{operation}: {reason}")]
pub struct Failure {
    /// The operation that failed, possibly with its operands.
    pub operation: String,
    pub reason: String,
    /// The worker it failed on; empty if none.
    pub worker: String,
    /// The line that issued it; only its client can resolve it.
    pub line: SourceId,
    /// The tensors that take up most memory, if there was no room.
    pub largest: Vec<Holding>,
    /// The other sessions that hold most of the same.
    pub others: Vec<Other>,
}

impl Failure {
    /// A failure for a reason that has nothing to do with memory.
    pub fn new(
        operation: impl Into<String>,
        reason: impl Into<String>,
        worker: impl Into<String>,
        line: SourceId,
    ) -> Failure {
        let (operation, reason, worker) = (operation.into(), reason.into(), worker.into());
        let (largest, others) = (Vec::new(), Vec::new());
        Failure { operation, reason, worker, line, largest, others }
    }

    /// Whether an index was out of range, which every engine says in the same words.
    pub fn is_bad_index(&self) -> bool {
        self.reason.contains("is out of range for an axis of length")
    }
}

record!(struct Failure { operation, reason, worker, line, largest, others });
