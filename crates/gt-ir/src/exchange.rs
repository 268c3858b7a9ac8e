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
use crate::record;
use crate::sharding::{Block, Reduction};

/// Names a worker; never used again for another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct WorkerId(pub u32);

record!(struct WorkerId(number));

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A place of a session for a worker. Plans are made over slots: when a worker is gone, its slots
/// move to others, and no plan changes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SlotId(pub u32);

record!(struct SlotId(number));

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A session's slot on a worker: it has tensors and a queue of its own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LaneId {
    /// Numbers of sessions are never used again.
    pub session: u32,
    pub slot: SlotId,
}

record!(struct LaneId { session, slot });

/// Names an exchange of a session. A session begins them in their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct TransferId(pub u64);

record!(struct TransferId(number));

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

record!(enum Collective {
    0 => AllGather, 1 => ReduceScatter, 2 => AllReduce, 3 => AllToAll, 4 => Broadcast, 5 => Send,
});

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

/// One slot's part of an exchange.
#[derive(Clone, PartialEq, Debug)]
pub struct Exchange {
    pub transfer: TransferId,
    pub collective: Collective,
    /// The tensor that blocks are taken from.
    pub input: Option<TensorId>,
    /// The tensor that is made, if any.
    pub output: Option<(TensorId, Meta)>,
    pub parts: Parts,
    /// How blocks for the same place are combined; otherwise each place is filled once.
    pub reduction: Option<Reduction>,
    /// With whom the engine carries it out; without, pieces go from worker to worker.
    pub joint: Option<Arc<Joint>>,
    /// The line that needed it, for errors.
    pub line: SourceId,
}

record!(struct Exchange {
    transfer, collective, input, output, parts, reduction, joint, line,
});

/// Which blocks a slot gives, and which it gets.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parts {
    /// Which blocks of its input go to whom.
    pub sends: Vec<(SlotId, Block)>,
    /// What its output is made of, in the order in which it is combined.
    pub receives: Vec<Receive>,
}

record!(struct Parts { sends, receives });

/// A block of an exchange's output.
#[derive(Clone, PartialEq, Debug)]
pub struct Receive {
    pub from: Sender,
    /// Where in the output it goes.
    pub at: Block,
}

record!(struct Receive { from, at });

/// Whom a block comes from.
#[derive(Clone, PartialEq, Debug)]
pub enum Sender {
    /// This block of the slot's own input.
    Own(Block),
    Slot(SlotId),
}

record!(enum Sender { 0 => Own(block), 1 => Slot(slot) });

/// A block on its way from one slot of a session to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    pub transfer: TransferId,
    pub from: SlotId,
    pub to: LaneId,
    /// Its values, or why there are none.
    pub result: Result<Content, Failure>,
}

record!(struct Piece { transfer, from, to, result });
