//! Snapshots of lanes: the values from which a session's tensors are restored when a worker is
//! lost.
//!
//! A snapshot is a point in the stream of every lane of a session. Each lane stores its values at
//! that point, and another worker stores a copy.

use std::fmt;

use crate::data::Content;
use crate::ids::{SessionId, SlotId, WorkerId};
use crate::instruction::{SourceId, TensorId};
use crate::message::Failure;
use crate::names::Names;
use crate::record;
use crate::sharding::Block;

/// The owner of values: a slot of a session. The session's number stays the same when its lanes are
/// restored.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Owner {
    pub session: SessionId,
    pub slot: SlotId,
}

record!(struct Owner { session, slot });

/// The command that marks a snapshot in a lane's stream.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    pub session: SessionId,
    pub number: u64,
    /// The worker that stores a copy; the dispatcher if `None`. The slot's own worker if no other
    /// copy is stored.
    pub keeper: Option<WorkerId>,
    /// The most bytes that the keeper stores.
    pub most: u64,
    /// The tensors that become the publication `session`; `None` for the snapshot of a session,
    /// which has all tensors of the lane.
    pub published: Option<Vec<ToPublish>>,
}

record!(struct Snapshot { session, number, keeper, most, published });

/// A slot's part of a tensor that is being published.
#[derive(Clone, PartialEq, Debug)]
pub struct ToPublish {
    /// The lane's tensor.
    pub tensor: TensorId,
    /// The number of the whole tensor in the publication; they increase.
    pub index: TensorId,
    pub block: Block,
}

record!(struct ToPublish { tensor, index, block });

/// A tensor's value, or its failure, in a snapshot.
#[derive(Clone, PartialEq, Debug)]
pub struct SavedValue {
    pub tensor: TensorId,
    /// The line that created it.
    pub line: SourceId,
    pub result: Result<Content, Failure>,
}

record!(struct SavedValue { tensor, line, result });

impl SavedValue {
    /// Returns the bytes of the value; 0 for one of a publication, which is stored with that.
    pub fn bytes(&self) -> u64 {
        match &self.result {
            Ok(Content::Published(_)) | Err(_) => 0,
            Ok(content) => content.meta().bytes() as u64,
        }
    }
}

/// Values of a slot's snapshot that the receiver does not have.
#[derive(Clone, PartialEq, Debug)]
pub struct Backup {
    pub owner: Owner,
    pub snapshot: u64,
    /// The worker that sends the values to another; `None` otherwise.
    pub sender: Option<WorkerId>,
    pub values: Vec<SavedValue>,
    /// Present in the message with the last values.
    pub inventory: Option<Inventory>,
}

record!(struct Backup { owner, snapshot, sender, values, inventory });

/// The state of a slot at a snapshot, besides the values.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Inventory {
    /// The ids of all its tensors.
    pub names: Names,
    /// The number of runs of each of its plans, by the plan's hash, as far as it affects their
    /// execution.
    pub runs: Vec<(u64, u32)>,
}

record!(struct Inventory { names, runs });

/// Why a snapshot is not stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unkept {
    /// The worker that should store the values cannot be reached.
    Unreachable(String),
    /// Some values have not arrived.
    Incomplete,
    /// The snapshot was stored, and has been dropped since.
    Dropped(String),
    /// The snapshot cannot be stored.
    Refused(String),
}

record!(enum Unkept {
    0 => Unreachable(reason), 1 => Incomplete, 2 => Dropped(reason), 3 => Refused(reason),
});

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unkept::Unreachable(reason) => write!(f, "another worker cannot be reached: {reason}"),
            Unkept::Incomplete => f.write_str("some values were lost in transit"),
            Unkept::Dropped(reason) | Unkept::Refused(reason) => f.write_str(reason),
        }
    }
}
