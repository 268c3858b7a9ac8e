//! Fabrics and collectives: data movement from engine to engine, such as by NCCL or Gloo, without
//! passing through the workers.

use crate::ids::{SlotId, WorkerId};
use crate::record;
use crate::wire::{DecodeError, Decoded, Record, Sink, Source};

/// The transport by which a worker's engine reaches others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fabric {
    /// The library and its version, without spaces: engines of equal kinds can form a group.
    pub kind: String,
    /// Whether it works between workers of the same machine only.
    pub local: bool,
    /// The rendezvous address of groups whose first member is this worker.
    pub store: String,
    /// The engine's device, if a group must not contain a device twice; otherwise empty.
    pub device: String,
}

record!(struct Fabric { kind, local, store, device });

/// A collective: an exchange that the engines of all members carry out together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EngineCollective {
    /// [`Fabric::kind`] of all members.
    pub kind: String,
    /// The first member's [`Fabric::store`].
    pub store: String,
    /// In the order of their ranks.
    pub members: Vec<Member>,
    pub call: CollectiveCall,
}

impl Record for EngineCollective {
    fn write<S: Sink>(&self, to: &mut S) {
        self.kind.write(to);
        self.store.write(to);
        self.members.write(to);
        self.call.write(to);
    }

    fn read(from: &mut Source) -> Decoded<EngineCollective> {
        let engine_collective = EngineCollective {
            kind: Record::read(from)?,
            store: Record::read(from)?,
            members: Record::read(from)?,
            call: Record::read(from)?,
        };
        match engine_collective.call {
            CollectiveCall::Broadcast { root }
                if root as usize >= engine_collective.members.len() =>
            {
                Err(DecodeError::BadCode { what: "a member", code: u64::from(root) })
            }
            _ => Ok(engine_collective),
        }
    }
}

/// A member of a collective.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub slot: SlotId,
    pub worker: WorkerId,
    pub name: String,
}

record!(struct Member { slot, worker, name });

/// The collective call that a group makes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CollectiveCall {
    /// Each member has a block of the same shape, and receives the combination of all.
    AllReduce,
    /// Each member has a block of equal size for every member, and receives the combination of
    /// those for it.
    ReduceScatter,
    /// Each member sends one block, of the same size for all, to every other.
    AllGather,
    /// The member of rank `root` sends one block to all others.
    Broadcast { root: u32 },
    /// Blocks of any size between any members.
    AllToAll,
}

record!(enum CollectiveCall {
    0 => AllReduce, 1 => ReduceScatter, 2 => AllGather, 3 => Broadcast { root }, 4 => AllToAll,
});

impl CollectiveCall {
    /// Returns the name that engines receive.
    pub const fn name(self) -> &'static str {
        match self {
            CollectiveCall::AllReduce => "all_reduce",
            CollectiveCall::ReduceScatter => "reduce_scatter",
            CollectiveCall::AllGather => "all_gather",
            CollectiveCall::Broadcast { .. } => "broadcast",
            CollectiveCall::AllToAll => "all_to_all",
        }
    }

    /// Returns the equivalent without combining: each member receives all blocks that it would
    /// combine.
    pub const fn without_combining(self) -> CollectiveCall {
        match self {
            CollectiveCall::AllReduce => CollectiveCall::AllGather,
            CollectiveCall::ReduceScatter => CollectiveCall::AllToAll,
            other => other,
        }
    }

    pub const fn combines(self) -> bool {
        matches!(self, CollectiveCall::AllReduce | CollectiveCall::ReduceScatter)
    }
}

impl EngineCollective {
    pub fn rank_of(&self, slot: SlotId) -> Option<usize> {
        self.members.iter().position(|member| member.slot == slot)
    }

    /// Returns the members' names, for messages.
    pub fn names(&self) -> String {
        let names: Vec<String> =
            self.members.iter().map(|member| format!("'{}'", member.name)).collect();
        names.join(", ")
    }
}
