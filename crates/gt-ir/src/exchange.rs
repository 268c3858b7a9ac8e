//! Exchanges: data movement between a session's slots.
//!
//! Every redistribution is an exchange: each slot sends blocks of its input, and assembles its
//! output from the blocks that it receives, placed side by side or combined. All-gather,
//! reduce-scatter, all-to-all, broadcast and send differ only in which blocks go where.

use std::sync::Arc;

use crate::data::Content;
use crate::fabric::EngineCollective;
use crate::ids::{LaneId, SlotId, TransferId};
use crate::instruction::{SourceId, TensorId};
use crate::message::Failure;
use crate::operation::Meta;
use crate::record;
use crate::shape::Shape;
use crate::sharding::{Block, Reduction};

/// The collective operation that an exchange amounts to for its group.
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
    /// The tensor that blocks are sent from.
    pub input: Option<TensorId>,
    /// The tensor that the exchange makes on this slot, if any.
    pub output: Option<(TensorId, Meta)>,
    pub parts: Parts,
    /// What goes through this slot if the exchange is a chain, from neighbour to neighbour:
    /// then `parts` is empty.
    pub hops: Vec<Hop>,
    /// How the received blocks are combined; `None` if each fills its own region of the output.
    pub reduction: Option<Reduction>,
    /// Set for a collective of the members' engines; otherwise pieces go from worker to worker.
    pub engine_collective: Option<Arc<EngineCollective>>,
    /// The line that needed it, for errors.
    pub line: SourceId,
}

record!(struct Exchange {
    transfer, collective, input, output, parts, hops, reduction, engine_collective, line,
});

/// The blocks that a slot sends and receives.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Parts {
    /// Blocks of its input, by receiver.
    pub sends: Vec<(SlotId, Block)>,
    /// The parts of its output, in the order in which they are combined.
    pub receives: Vec<Receive>,
}

record!(struct Parts { sends, receives });

impl Exchange {
    /// Returns the slots that this one sends to, and those that it receives from, once for each
    /// block.
    pub fn neighbours(&self) -> (Vec<SlotId>, Vec<SlotId>) {
        let to = self.parts.sends.iter().map(|(to, _)| *to);
        let to = to.chain(self.hops.iter().flat_map(|hop| hop.to.iter().copied())).collect();
        let from = self.parts.receives.iter().map(|received| &received.from);
        let from = from.chain(self.hops.iter().map(|hop| &hop.from));
        let slots = from.filter_map(|from| match from {
            Sender::Slot(slot) => Some(*slot),
            Sender::Own(_) => None,
        });
        (to, slots.collect())
    }
}

/// A block of an exchange's output.
#[derive(Clone, PartialEq, Debug)]
pub struct Receive {
    pub from: Sender,
    /// Its position in the output.
    pub at: Block,
}

record!(struct Receive { from, at });

/// The source of a block.
#[derive(Clone, PartialEq, Debug)]
pub enum Sender {
    /// This block of the slot's own input.
    Own(Block),
    Slot(SlotId),
}

record!(enum Sender { 0 => Own(block), 1 => Slot(slot) });

/// A block that goes through a slot of a chain.
#[derive(Clone, PartialEq, Debug)]
pub struct Hop {
    /// Where it comes from. The blocks from one slot arrive in the order of the hops.
    pub from: Sender,
    /// The block of the slot's own input with which it is combined: by the exchange's reduction, or
    /// joined along an axis.
    pub with: Option<OwnBlock>,
    /// The slots that it is sent to then.
    pub to: Vec<SlotId>,
    /// What of it becomes a part of the output.
    pub kept: Option<KeptBlock>,
}

record!(struct Hop { from, with, to, kept });

impl Hop {
    /// Returns the shape of what arrives, if this hop determines it.
    pub fn shape(&self) -> Option<Shape> {
        match (&self.with, &self.kept) {
            (Some(OwnBlock { block, axis: None }), _) => Some(block.shape),
            (None, Some(KeptBlock { part: None, at })) => Some(at.shape),
            _ => None,
        }
    }
}

/// What a block of a chain is combined with.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnBlock {
    pub block: Block,
    /// The axis along which both are joined; `None` if they are reduced.
    pub axis: Option<u32>,
}

record!(struct OwnBlock { block, axis });

/// What of a block of a chain becomes a part of the output.
#[derive(Clone, PartialEq, Debug)]
pub struct KeptBlock {
    /// The part of the block; `None` for all of it.
    pub part: Option<Block>,
    /// Its position in the output.
    pub at: Block,
}

record!(struct KeptBlock { part, at });

/// A block in transit from one slot of a session to another.
#[derive(Clone, PartialEq, Debug)]
pub struct Piece {
    pub transfer: TransferId,
    /// How many of the transfer the sender has sent to this slot before.
    pub number: u32,
    pub from: SlotId,
    pub to: LaneId,
    /// Its values, or the sender's failure.
    pub result: Result<Content, Failure>,
}

record!(struct Piece { transfer, number, from, to, result });
