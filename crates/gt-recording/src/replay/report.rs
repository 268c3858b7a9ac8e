//! What a replay has found.

use std::time::Duration;

use gt_ir::{Instruction, Meta, SourceId, TensorId};
use rustc_hash::FxHashMap;

use super::compare::Received;
use crate::outcome::Outcome;

/// What a replay has found.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// The number of instructions that have run.
    pub instructions: u64,
    /// The values whose bits are equal to the recorded ones.
    pub equal: u64,
    /// The values that are equal within tolerances.
    pub close: u64,
    pub different: u64,
    /// The values of which nothing is recorded.
    pub unrecorded: u64,
    /// The first values that differ.
    pub differences: Vec<DifferingValue>,
    /// The instruction after which the replay was to stop, and its result.
    pub last: Option<LastInstruction>,
    pub took: Duration,
}

/// A value that differs from the recorded one.
#[derive(Debug)]
pub struct DifferingValue {
    /// The number of the last instruction before the program asked for it.
    pub at: u64,
    pub tensor: TensorId,
    /// The line that asked for it.
    pub line: SourceId,
    pub recorded: Outcome,
    pub received: Received,
}

/// The last instruction of a replay, and its (first) result.
#[derive(Debug)]
pub struct LastInstruction {
    pub instruction: Instruction,
    /// Shapes and dtypes of its operands.
    pub operands: FxHashMap<TensorId, Meta>,
    pub value: Received,
}
