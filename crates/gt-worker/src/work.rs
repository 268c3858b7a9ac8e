//! The interface between workers and drivers.

use std::time::Duration;

use gt_ir::message::Message;
use gt_ir::snapshot::{Backup, Owner};
use gt_ir::statistics::WorkerStats;
use gt_ir::stored::{SavePart, StoredValues};
use gt_ir::{EngineCollective, LaneId, Meta, Piece, TensorData, TensorId, WorkerId};

use crate::vault::SnapshotRecord;

/// A message that a worker sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Out {
    Dispatcher(Message),
    Worker(WorkerId, Piece),
    /// Values of a snapshot for another worker.
    Backup(WorkerId, Box<Backup>),
    /// What the driver is to do with files.
    Files(FileJob),
}

impl Out {
    /// Whether it tells others of a snapshot.
    pub fn is_of_snapshot(&self) -> bool {
        match self {
            Out::Backup(..) => true,
            Out::Dispatcher(message) => {
                matches!(message, Message::Backup(_) | Message::Backed { .. })
            }
            Out::Worker(..) | Out::Files(_) => false,
        }
    }

    /// Whether it tells others that a snapshot is complete.
    pub fn completes_snapshot(&self) -> bool {
        match self {
            Out::Backup(_, backup) | Out::Dispatcher(Message::Backup(backup)) => {
                backup.inventory.is_some()
            }
            Out::Dispatcher(Message::Backed { result, .. }) => result.is_ok(),
            _ => false,
        }
    }

    /// Values of a snapshot, for a worker or else for the dispatcher.
    pub(crate) fn backup(to: Option<WorkerId>, backup: Backup) -> Out {
        let backup = Box::new(backup);
        match to {
            Some(worker) => Out::Backup(worker, backup),
            None => Out::Dispatcher(Message::Backup(backup)),
        }
    }
}

/// Work on files, which a driver does beside the worker's turns.
#[derive(Clone, PartialEq, Debug)]
pub enum FileJob {
    /// Write values into a file, and tell the dispatcher ([`Message::Saved`]).
    Write { part: Box<SavePart>, values: Vec<ToSave> },
    /// Read values, and hand them to the worker ([`Message::Loaded`]).
    Read { lane: LaneId, tensor: TensorId, values: Box<StoredValues> },
    /// Write a tensor that there is no room for into the file of this number, and tell the worker
    /// ([`Message::Spilled`]).
    Spill { lane: LaneId, tensor: TensorId, number: u64, data: TensorData },
    /// Read it, and hand it to the worker ([`Message::Loaded`]).
    Restore { lane: LaneId, tensor: TensorId, number: u64, meta: Meta, checksum: u32 },
    /// Remove the file of this number.
    Discard { number: u64 },
    /// Write a value of a snapshot that there is no room for into a file without a name, map it, and
    /// hand it to the worker ([`Message::Shelved`]).
    Shelve { owner: Owner, tensor: TensorId, data: TensorData },
}

/// Values to be written.
#[derive(Clone, PartialEq, Debug)]
pub enum ToSave {
    Data(TensorData),
    /// They are in the file of this number, as there was no room for them ([`FileJob::Spill`]).
    Spilled {
        number: u64,
        meta: Meta,
        checksum: u32,
    },
}

/// A worker's options.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many consecutive instructions are given to the engine as one plan; 1 for none.
    pub batch_size: usize,
    /// Whether an operation fails if it makes a NaN from operands without any.
    pub check_nan: bool,
    /// Whether turns are measured by the engine's clock; otherwise their cost is an estimate, which
    /// is the same each time.
    pub is_timed: bool,
    /// The bytes that tensors may take up in the device's memory; `None` for no limit.
    pub memory: Option<u64>,
    /// The bytes that may be written away to disk where there is no room; 0 for none.
    pub spill: u64,
    /// The bytes of the smallest tensors that are moved elsewhere.
    pub spill_from: u64,
    /// The bytes of the host's memory that tensors of a device may be moved to.
    pub host_memory: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            batch_size: 1,
            check_nan: false,
            is_timed: true,
            memory: None,
            spill: 0,
            spill_from: 64 << 10,
            host_memory: 0,
        }
    }
}

/// A worker, independent of its engine's type.
///
/// A driver passes messages to [`Work::handle`], which is cheap, and calls [`Work::step`] while
/// there is something to do, handling new messages between steps.
pub trait Work: Send {
    /// Takes a message from the dispatcher or another worker. Commands are only queued.
    fn handle(&mut self, message: Message, out: &mut Vec<Out>);

    /// Runs a turn of one lane; returns false if no lane was ready.
    fn step(&mut self, out: &mut Vec<Out>) -> bool;

    /// Whether the device is kept for a session whose next message from another worker is awaited:
    /// a step does nothing for now.
    fn is_holding(&self) -> bool;

    /// The next joint exchange, all members of which are ready. The driver must first send
    /// everything in `out`, as other members may wait for it, and then call [`Work::join`].
    fn due(&self) -> Option<&EngineCollective>;

    /// Carries out the joint exchange that is due; blocks until all members take part.
    fn join(&mut self, out: &mut Vec<Out>);

    /// Whether values can be read between turns: not from an engine that runs ahead, as a device does.
    fn can_read(&self) -> bool;

    /// A tensor's value, if it is computed and in memory, and nothing is waited for to read it.
    fn read(&mut self, lane: LaneId, tensor: TensorId) -> Option<TensorData>;

    fn stats(&self) -> WorkerStats;

    /// Describes state that has outlived its session, for tests; `None` if there is none.
    fn leftovers(&self) -> Option<String>;

    /// The estimated work ([`gt_ir::Operation::work`]) that its engine does in a second.
    fn rate(&self) -> u64;

    /// Turns events on or off. Their times are of the clock that shows `now`: the dispatcher's own
    /// if in one process, or else one that the dispatcher translates.
    fn observe(&mut self, on: bool, now: Duration);

    /// Flushes unsent events to `out`, for drivers that are idle.
    fn report(&mut self, out: &mut Vec<Out>);

    /// The dispatcher was started again: drops all lanes, and the snapshots unless they are wanted.
    fn renew(&mut self, keeps_snapshots: bool, out: &mut Vec<Out>);

    /// Takes up the snapshots of records that another process has written. Returns how many there are.
    fn adopt(&mut self, records: Vec<SnapshotRecord>) -> usize;

    /// Records all changes of the snapshots that are kept here from now on. Returns the records that
    /// lead to what there is.
    fn keep_records(&mut self) -> Vec<SnapshotRecord>;

    /// Changes of the snapshots are not recorded any more.
    fn leave_records(&mut self);

    /// The changes of the snapshots since they were taken last.
    fn take_records(&mut self) -> Vec<SnapshotRecord>;

    /// Called in the child after a fork.
    fn after_fork(&mut self);
}
