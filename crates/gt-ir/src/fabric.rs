//! Ways between engines: data that goes from one worker's engine to another's without passing
//! through the workers, as by NCCL or Gloo.

use bytes::Bytes;

use crate::data::{Content, TensorData};
use crate::dtype::DType;
use crate::exchange::WorkerId;
use crate::shape::Shape;

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

/// A worker that takes part in a joint exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub worker: WorkerId,
    pub name: String,
}

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
    pub fn rank_of(&self, worker: WorkerId) -> Option<usize> {
        self.members.iter().position(|member| member.worker == worker)
    }

    /// The members' names, for people.
    pub fn names(&self) -> String {
        let names: Vec<String> =
            self.members.iter().map(|member| format!("'{}'", member.name)).collect();
        names.join(", ")
    }
}

/// A member's word to another that it is ready, as the content of a piece. `epoch` is how often it
/// has seen the group fail: the next one is made anew if anybody has.
pub fn ready(epoch: u64) -> Content {
    let bytes = Bytes::copy_from_slice(&epoch.to_le_bytes());
    Content::Data(TensorData { dtype: DType::I64, shape: Shape::SCALAR, bytes })
}

/// The epoch of a member that is ready; `None` for what [`ready`] does not give.
pub fn epoch(content: &Content) -> Option<u64> {
    match content {
        Content::Data(data) if data.dtype == DType::I64 => {
            Some(u64::from_le_bytes(data.bytes[..].try_into().ok()?))
        }
        _ => None,
    }
}
