//! Failures of operations.

use crate::entitlement::{Holding, Other};
use crate::instruction::SourceId;
use crate::record;

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
    /// The largest tensors, for an operation out of memory.
    pub largest: Vec<Holding>,
    /// The other sessions that hold the most of the exhausted memory.
    pub others: Vec<Other>,
    /// The id of the tensor that was not computed, if the client assigned it: it follows program
    /// order.
    pub place: Option<u64>,
}

/// How the reason of a failure for lack of memory begins.
pub const OUT_OF_MEMORY: &str = "out of memory";

/// An index that was out of range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadIndex {
    pub index: i64,
    /// The length of the axis.
    pub length: u64,
}

impl Failure {
    /// Returns a failure for a reason other than memory.
    pub fn new(
        operation: impl Into<String>,
        reason: impl Into<String>,
        worker: impl Into<String>,
        line: SourceId,
    ) -> Failure {
        let (operation, reason, worker) = (operation.into(), reason.into(), worker.into());
        let (largest, others, place) = (Vec::new(), Vec::new(), None);
        Failure { operation, reason, worker, line, largest, others, place }
    }

    /// Returns the index that was out of range, parsed from the reason, which every engine words
    /// alike; `None` for any other reason.
    pub fn bad_index(&self) -> Option<BadIndex> {
        let (before, length) = self.reason.split_once(" is out of range for an axis of length ")?;
        let digits = length.find(|c: char| !c.is_ascii_digit()).unwrap_or(length.len());
        let index = before.rsplit(' ').next()?.parse().ok()?;
        Some(BadIndex { index, length: length[..digits].parse().ok()? })
    }

    /// Returns whether memory did not suffice, parsed from the reason, which every engine and every
    /// limit words alike.
    pub fn is_of_memory(&self) -> bool {
        self.reason.starts_with(OUT_OF_MEMORY)
    }

    /// Returns whether the operation failed because of its values, rather than memory, workers or
    /// links: it would fail on any worker.
    pub fn is_of_values(&self) -> bool {
        let says = |words: &str| self.reason.contains(words);
        self.bad_index().is_some() || says("division by zero") || says("negative integer powers")
    }

    /// Returns the name of the operation that failed, without its operands.
    pub fn name(&self) -> &str {
        self.operation.split(' ').next().unwrap_or_default()
    }

    /// Returns its position in the program; an unknown position sorts last. Of several failures,
    /// the first in this order is reported.
    pub fn order(&self) -> u64 {
        self.place.unwrap_or(u64::MAX)
    }
}

record!(struct Failure { operation, reason, worker, line, largest, others, place });

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(reason: &str, place: Option<u64>) -> Failure {
        Failure { place, ..Failure::new("gather of int64 (2,)", reason, "w", SourceId(2)) }
    }

    #[test]
    fn a_bad_index_is_read_from_what_engines_say() {
        let found = |reason| failure(reason, None).bad_index();
        let (index, length) = (-7, 3);
        let expected = Some(BadIndex { index, length });
        assert_eq!(found("index -7 is out of range for an axis of length 3"), expected);
        assert_eq!(found("index -7 is out of range for an axis of length 3; replayed"), expected);
        assert_eq!(found("index x is out of range for an axis of length 3"), None);
        assert_eq!(found("out of memory: 3 bytes asked for"), None);
    }

    #[test]
    fn lack_of_memory_is_read_from_what_engines_and_limits_say() {
        assert!(failure("out of memory: 3 bytes asked for", None).is_of_memory());
        assert!(!failure("index 3 is out of range for an axis of length 3", None).is_of_memory());
    }

    #[test]
    fn failures_have_the_order_of_the_program() {
        let (first, later, unknown) =
            (failure("", Some(1)), failure("", Some(2)), failure("", None));
        assert!(first.order() < later.order() && later.order() < unknown.order());
        assert_eq!(first.name(), "gather");
    }
}
