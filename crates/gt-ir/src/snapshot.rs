//! Snapshots of lanes: the values from which a session's tensors are made again when a worker is lost.
//!
//! A snapshot is a point in the stream of every lane of a session. Each lane keeps the values that
//! it has there, and a copy of them is kept elsewhere.

use std::fmt;

use crate::data::Content;
use crate::exchange::{SlotId, WorkerId};
use crate::instruction::{SourceId, TensorId};
use crate::message::Failure;
use crate::names::Names;
use crate::record;

/// Whose values they are: a slot of a session. The session's number stays the same when its lanes
/// are made again.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Owner {
    pub session: u32,
    pub slot: SlotId,
}

record!(struct Owner { session, slot });

/// The place of a snapshot in a lane's stream.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    pub session: u32,
    pub number: u64,
    /// The worker that keeps a copy; the dispatcher if there is none.
    pub keeper: Option<WorkerId>,
    /// The most bytes that it keeps.
    pub most: u64,
}

record!(struct Snapshot { session, number, keeper, most });

/// A tensor's value, or its failure, in a snapshot.
#[derive(Clone, PartialEq, Debug)]
pub struct SavedValue {
    pub tensor: TensorId,
    /// The line that made it.
    pub line: SourceId,
    pub result: Result<Content, Failure>,
}

record!(struct SavedValue { tensor, line, result });

impl SavedValue {
    /// The bytes of the value.
    pub fn bytes(&self) -> u64 {
        self.result.as_ref().map_or(0, |content| content.meta().bytes() as u64)
    }
}

/// Values of a slot's snapshot that the receiver does not have.
#[derive(Clone, PartialEq, Debug)]
pub struct Backup {
    pub owner: Owner,
    pub snapshot: u64,
    /// The worker that sends them to another.
    pub sender: Option<WorkerId>,
    pub values: Vec<SavedValue>,
    /// With the last of its values.
    pub inventory: Option<Inventory>,
}

record!(struct Backup { owner, snapshot, sender, values, inventory });

/// What a slot has at a snapshot, beside the values.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Inventory {
    /// All of its tensors.
    pub names: Names,
    /// How often it has run each of its plans, by their hashes, where that decides how they are run.
    pub runs: Vec<(u64, u32)>,
}

record!(struct Inventory { names, runs });

/// Why values of a snapshot are not kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unkept {
    /// The worker that was to get them cannot be reached.
    Unreachable(String),
    /// Some have not come.
    Incomplete,
    /// They were, and are not any more.
    Dropped(String),
    /// They cannot be.
    Refused(String),
}

record!(enum Unkept {
    0 => Unreachable(reason), 1 => Incomplete, 2 => Dropped(reason), 3 => Refused(reason),
});

impl fmt::Display for Unkept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unkept::Unreachable(reason) => write!(f, "another worker cannot be reached: {reason}"),
            Unkept::Incomplete => f.write_str("some values were lost on their way"),
            Unkept::Dropped(reason) | Unkept::Refused(reason) => f.write_str(reason),
        }
    }
}
