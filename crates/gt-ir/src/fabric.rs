//! Ways between engines: data that goes from one worker's engine to another's without passing
//! through the workers, as by NCCL or Gloo.

use crate::exchange::{SlotId, WorkerId};
use crate::record;
use crate::wire::{DecodeError, Decoded, Record, Sink, Source};

/// Where a worker's engine joins others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fabric {
    /// What it goes by, and its version, without spaces: engines that say the same understand
    /// each other.
    pub kind: String,
    /// Whether only workers of the same machine reach it.
    pub local: bool,
    /// Where members of a group find each other, if this worker is the first of them.
    pub store: String,
    /// The device whose memory it moves, if a group must not have one twice; otherwise empty.
    pub device: String,
}

record!(struct Fabric { kind, local, store, device });

/// An exchange that its members' engines carry out together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joint {
    /// [`Fabric::kind`] of all members.
    pub kind: String,
    /// The first member's [`Fabric::store`].
    pub store: String,
    /// In the order of their ranks.
    pub members: Vec<Member>,
    pub way: Way,
}

impl Record for Joint {
    fn write<S: Sink>(&self, to: &mut S) {
        self.kind.write(to);
        self.store.write(to);
        self.members.write(to);
        self.way.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Joint> {
        let joint = Joint {
            kind: Record::read(from)?,
            store: Record::read(from)?,
            members: Record::read(from)?,
            way: Record::read(from)?,
        };
        match joint.way {
            Way::Broadcast { root } if root as usize >= joint.members.len() => {
                Err(DecodeError::BadCode { what: "a member", code: u64::from(root) })
            }
            _ => Ok(joint),
        }
    }
}

/// A worker that takes part in a joint exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub slot: SlotId,
    pub worker: WorkerId,
    pub name: String,
}

record!(struct Member { slot, worker, name });

/// What goes between the members, seen from all of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Way {
    /// Each has a block of one shape, and gets the combination of all.
    AllReduce,
    /// Each has a block of one size for each, and gets the combination of those for it.
    ReduceScatter,
    /// Each gives all others one block, all of one size.
    AllGather,
    /// The member of this rank gives all others one block.
    Broadcast { root: u32 },
    /// Blocks of any size from anybody to anybody.
    AllToAll,
}

record!(enum Way {
    0 => AllReduce, 1 => ReduceScatter, 2 => AllGather, 3 => Broadcast { root }, 4 => AllToAll,
});

impl Way {
    /// Its name, as engines know it.
    pub const fn name(self) -> &'static str {
        match self {
            Way::AllReduce => "all_reduce",
            Way::ReduceScatter => "reduce_scatter",
            Way::AllGather => "all_gather",
            Way::Broadcast { .. } => "broadcast",
            Way::AllToAll => "all_to_all",
        }
    }

    /// The same movement, but for one that combines: there everybody gets all that is to be
    /// combined.
    pub const fn without_combining(self) -> Way {
        match self {
            Way::AllReduce => Way::AllGather,
            Way::ReduceScatter => Way::AllToAll,
            other => other,
        }
    }

    pub const fn combines(self) -> bool {
        matches!(self, Way::AllReduce | Way::ReduceScatter)
    }
}

impl Joint {
    pub fn rank_of(&self, slot: SlotId) -> Option<usize> {
        self.members.iter().position(|member| member.slot == slot)
    }

    /// The members' names, for people.
    pub fn names(&self) -> String {
        let names: Vec<String> =
            self.members.iter().map(|member| format!("'{}'", member.name)).collect();
        names.join(", ")
    }
}
