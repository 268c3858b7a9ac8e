//! Data that workers send each other.
//!
//! Every movement between placements is an exchange: each worker sends blocks of a tensor it has,
//! and makes a tensor of the blocks that it gets, put side by side or combined. All-gather,
//! reduce-scatter, all-to-all, broadcast, send and receive differ in which blocks go where.

use std::fmt;
use std::sync::Arc;

use crate::data::Content;
use crate::fabric::Joint;
use crate::instruction::{SourceId, TensorId};
use crate::message::Failure;
use crate::operation::Meta;
use crate::sharding::{Block, Reduction};

/// Names a worker; never used again for another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct WorkerId(pub u32);

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Names one exchange among all workers. The session stands in the upper bits, as in a tensor's
/// id.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TransferId(pub u64);

impl TransferId {
    /// Numbers of transfers of one generation of a session's number.
    const GENERATION_BITS: u32 = 32;

    /// What a session counts its transfers from, if its number was used `generation` times
    /// before: pieces of an earlier session are not taken for a later one's.
    pub fn first(generation: u64) -> u64 {
        generation << TransferId::GENERATION_BITS
    }

    pub fn session(self) -> u32 {
        TensorId(self.0).split().0
    }

    pub fn generation(self) -> u64 {
        TensorId(self.0).split().1.0 >> TransferId::GENERATION_BITS
    }
}

/// What an exchange does for its group as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Collective {
    AllGather,
    ReduceScatter,
    AllReduce,
    AllToAll,
    Broadcast,
    Send,
}

impl Collective {
    pub const ALL: [Collective; 6] = [
        Collective::AllGather,
        Collective::ReduceScatter,
        Collective::AllReduce,
        Collective::AllToAll,
        Collective::Broadcast,
        Collective::Send,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Collective::AllGather => "all_gather",
            Collective::ReduceScatter => "reduce_scatter",
            Collective::AllReduce => "all_reduce",
            Collective::AllToAll => "all_to_all",
            Collective::Broadcast => "broadcast",
            Collective::Send => "send",
        }
    }
}

/// One worker's part of an exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    pub transfer: TransferId,
    /// Whose part this is.
    pub worker: WorkerId,
    pub collective: Collective,
    /// The tensor that blocks are taken from.
    pub input: Option<TensorId>,
    /// Which blocks of it go to whom.
    pub sends: Vec<(WorkerId, Block)>,
    /// The tensor that is made, if any.
    pub output: Option<(TensorId, Meta)>,
    /// What it is made of, in the order in which it is combined.
    pub sources: Vec<Source>,
    /// How blocks for the same place are combined; otherwise each place is filled once.
    pub reduction: Option<Reduction>,
    /// With whom the engine carries it out; without, pieces go from worker to worker.
    pub joint: Option<Arc<Joint>>,
    /// The line that needed it, for errors.
    pub line: SourceId,
}

/// A block of an exchange's output.
#[derive(Clone, PartialEq, Debug)]
pub struct Source {
    pub from: Origin,
    /// Where in the output it goes.
    pub at: Block,
}

#[derive(Clone, PartialEq, Debug)]
pub enum Origin {
    /// This block of the worker's own input.
    Own(Block),
    Worker(WorkerId),
}

/// A block on its way from one worker to another. In a joint exchange it is a member's word that
/// it is ready: see [`crate::fabric::ready`].
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    pub transfer: TransferId,
    pub from: WorkerId,
    /// Its values, or why there are none.
    pub result: Result<Content, Failure>,
}
