//! What a planner has decided, for people to read.

use crate::exchange::Collective;
use crate::instruction::SourceId;
use crate::operation::Meta;
use crate::record;

/// An operation as it was planned.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedStep {
    pub operation: String,
    /// The user's line.
    pub line: SourceId,
    /// The tensors it takes, as they were when it ran.
    pub operands: Vec<PlacedTensor>,
    pub output: PlacedTensor,
    /// What had to be moved for it.
    pub moves: Vec<PlannedMove>,
}

record!(struct PlannedStep { operation, line, operands, output, moves });

/// A tensor, and how it lies over which workers.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacedTensor {
    pub meta: Meta,
    /// `Shard(0)`, `Replicate`, `Partial(sum)`; several, joined by ` x `, on a mesh.
    pub placement: String,
    /// The workers' numbers.
    pub workers: Vec<u32>,
}

record!(struct PlacedTensor { meta, placement, workers });

/// Data that goes between workers.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedMove {
    pub collective: Collective,
    pub bytes: u64,
    pub from: PlacedTensor,
    pub to: PlacedTensor,
    pub reason: String,
}

record!(struct PlannedMove { collective, bytes, from, to, reason });

/// What was planned between the beginning and the end of a piece of program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Explanation {
    pub steps: Vec<PlannedStep>,
    /// The bytes of the session's tensors on each worker at the end, by its number.
    pub memory: Vec<(u32, u64)>,
}

record!(struct Explanation { steps, memory });
