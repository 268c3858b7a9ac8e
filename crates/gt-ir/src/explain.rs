//! Explanations: the planner's decisions, as shown to users.

use smallvec::SmallVec;

use crate::exchange::Collective;
use crate::instruction::SourceId;
use crate::layout::{Placement, describe};
use crate::operation::Meta;
use crate::record;

/// An operation as it was planned.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedStep {
    pub operation: String,
    /// The user's line that issued it.
    pub line: SourceId,
    /// Its operands, in the layouts in which the operation reads them.
    pub operands: Vec<PlacedTensor>,
    pub output: PlacedTensor,
    /// The data movement that it needed.
    pub redistributions: Vec<PlannedRedistribution>,
    /// Whether its shape depends on data, so that the planner waited for a count before it.
    pub data_dependent: bool,
}

record!(struct PlannedStep { operation, line, operands, output, redistributions, data_dependent });

/// A tensor's placement on workers.
#[derive(Clone, PartialEq, Debug)]
pub struct PlacedTensor {
    pub meta: Meta,
    /// The lengths of the mesh's axes.
    pub dims: SmallVec<[usize; 2]>,
    /// A placement for each axis of the mesh.
    pub placements: SmallVec<[Placement; 2]>,
    /// The workers' numbers, in the mesh's row-major order.
    pub workers: Vec<u32>,
}

record!(struct PlacedTensor { meta, dims, placements, workers });

impl PlacedTensor {
    /// Returns the placement as users see it: `Shard(0)`, `Replicate x Partial(sum)`.
    pub fn placement(&self) -> String {
        describe(&self.placements)
    }
}

/// Data movement between workers.
#[derive(Clone, PartialEq, Debug)]
pub struct PlannedRedistribution {
    pub collective: Collective,
    pub bytes: u64,
    pub from: PlacedTensor,
    pub to: PlacedTensor,
    pub reason: String,
}

record!(struct PlannedRedistribution { collective, bytes, from, to, reason });

/// The steps planned in a section of a program.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Explanation {
    pub steps: Vec<PlannedStep>,
    /// The bytes of the session's tensors on each worker at the end, by its number.
    pub memory: Vec<(u32, u64)>,
    /// The session's slots by number, each with the name of its worker; empty for none.
    pub slots: Vec<(u32, String)>,
    /// The machine of each of these workers; empty if it is unknown.
    pub machines: Vec<String>,
    /// The links between these machines that are much slower than others.
    pub slow_links: Vec<SlowLink>,
}

record!(struct Explanation { steps, memory, slots, machines, slow_links });

/// A link between two machines that is much slower than others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlowLink {
    /// The names of the machines.
    pub one: String,
    pub other: String,
    pub bytes_per_second: u64,
}

record!(struct SlowLink { one, other, bytes_per_second });
