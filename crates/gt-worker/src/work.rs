//! The interface between workers and drivers.

use std::time::Duration;

use gt_ir::event::EmitLevel;
use gt_ir::message::{Failure, ServerToWorker, WorkerToServer, WorkerToWorker};
use gt_ir::snapshot::{Backup, Owner};
use gt_ir::statistics::WorkerStats;
use gt_ir::stored::{OnDisk, SavePart, StoredValues};
use gt_ir::{Content, EngineCollective, LaneId, Meta, Piece, TensorData, TensorId, WorkerId};

use crate::engine::Notifier;
use crate::snapshot_store::SnapshotRecord;

/// What a worker handles.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkerInput {
    Server(ServerToWorker),
    Worker(WorkerToWorker),
    /// A file operation of the worker's own is complete.
    File(FileResult),
}

impl From<ServerToWorker> for WorkerInput {
    fn from(message: ServerToWorker) -> WorkerInput {
        WorkerInput::Server(message)
    }
}

impl From<WorkerToWorker> for WorkerInput {
    fn from(message: WorkerToWorker) -> WorkerInput {
        WorkerInput::Worker(message)
    }
}

impl From<FileResult> for WorkerInput {
    fn from(result: FileResult) -> WorkerInput {
        WorkerInput::File(result)
    }
}

/// The result of a file operation whose values stay in the worker.
#[derive(Clone, PartialEq, Debug)]
pub enum FileResult {
    /// The values that were read for a tensor of a lane ([`FileJob::Read`], [`FileJob::Restore`]).
    Loaded { lane: LaneId, tensor: TensorId, result: Result<Content, Failure> },
    /// A tensor of a lane was written into the file of this number ([`FileJob::Spill`]).
    Spilled { lane: LaneId, tensor: TensorId, number: u64, result: Result<OnDisk, Failure> },
    /// A value of a snapshot was written and mapped ([`FileJob::SpillSnapshot`]).
    SnapshotSpilled { owner: Owner, tensor: TensorId, result: Result<Content, Failure> },
}

/// A message that a worker sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Out {
    Server(WorkerToServer),
    Worker(WorkerId, Piece),
    /// Values of a snapshot for another worker.
    Backup(WorkerId, Box<Backup>),
    /// File operations for the driver.
    Files(FileJob),
}

impl Out {
    /// Returns whether it reports a snapshot to others.
    pub fn is_of_snapshot(&self) -> bool {
        match self {
            Out::Backup(..) => true,
            Out::Server(message) => {
                matches!(message, WorkerToServer::Backup(_) | WorkerToServer::BackupStored { .. })
            }
            Out::Worker(..) | Out::Files(_) => false,
        }
    }

    /// Returns whether it reports a complete snapshot to others.
    pub fn completes_snapshot(&self) -> bool {
        match self {
            Out::Backup(_, backup) | Out::Server(WorkerToServer::Backup(backup)) => {
                backup.inventory.is_some()
            }
            Out::Server(WorkerToServer::BackupStored { result, .. }) => result.is_ok(),
            _ => false,
        }
    }

    /// Values of a snapshot, for a worker or else for the server.
    pub(crate) fn backup(to: Option<WorkerId>, backup: Backup) -> Out {
        let backup = Box::new(backup);
        match to {
            Some(worker) => Out::Backup(worker, backup),
            None => Out::Server(WorkerToServer::Backup(backup)),
        }
    }
}

/// A file operation, which a driver runs beside the worker's turns.
#[derive(Clone, PartialEq, Debug)]
pub enum FileJob {
    /// Write values into a file, and report to the server ([`WorkerToServer::Saved`]).
    Write { part: Box<SavePart>, values: Vec<ToSave> },
    /// Read values, and pass them to the worker ([`FileResult::Loaded`]).
    Read { lane: LaneId, tensor: TensorId, values: Box<StoredValues> },
    /// Write a spilled tensor into the file of this number, and report to the worker
    /// ([`FileResult::Spilled`]).
    Spill { lane: LaneId, tensor: TensorId, number: u64, data: TensorData },
    /// Read a spilled tensor, and pass it to the worker ([`FileResult::Loaded`]).
    Restore { lane: LaneId, tensor: TensorId, number: u64, meta: Meta, checksum: u32 },
    /// Remove the file of this number.
    Discard { number: u64 },
    /// Write a value of a snapshot into a file without a name, map it, and pass it to the worker
    /// ([`FileResult::SnapshotSpilled`]).
    SpillSnapshot { owner: Owner, tensor: TensorId, data: TensorData },
}

/// Values to be written.
#[derive(Clone, PartialEq, Debug)]
pub enum ToSave {
    Data(TensorData),
    /// Spilled values, in the file of this number ([`FileJob::Spill`]).
    Spilled {
        number: u64,
        meta: Meta,
        checksum: u32,
    },
}

/// A worker's options.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The most consecutive instructions that form one engine plan; 1 disables plans.
    pub batch_size: usize,
    /// Whether an operation fails if it makes a NaN from operands without any.
    pub check_nan: bool,
    /// Whether turns are measured by the engine's clock; otherwise their cost is a deterministic
    /// estimate.
    pub is_timed: bool,
    /// Whether long calls are paused for other sessions, if the engine can.
    pub pauses: bool,
    /// The bytes that tensors may take in the device's memory; `None` for no limit.
    pub memory: Option<u64>,
    /// The bytes that may spill to disk; 0 disables it.
    pub spill: u64,
    /// The bytes of the smallest tensors that are spilled.
    pub spill_from: u64,
    /// The bytes of host memory to which tensors of a device may spill.
    pub host_memory: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            batch_size: 1,
            check_nan: false,
            is_timed: true,
            pauses: false,
            memory: None,
            spill: 0,
            spill_from: 64 << 10,
            host_memory: 0,
        }
    }
}

/// A worker, independent of its engine's type.
///
/// A driver passes what arrives to [`Work::handle`], which is cheap, and calls [`Work::step`] while
/// there is work, handling new messages between steps.
pub trait Work: Send {
    /// Handles a message or the result of a file operation. Commands are only queued.
    fn handle(&mut self, input: WorkerInput, out: &mut Vec<Out>);

    /// Runs a turn of one lane; returns false if no lane was ready.
    fn step(&mut self, out: &mut Vec<Out>) -> bool;

    /// Returns for how long the driver may wait for messages before the next step, if it may: the
    /// device is kept for a session that awaits a message from another worker, or is about to ask,
    /// or computes a call between the steps. The end of a call wakes the driver
    /// ([`Work::allow_pauses`]).
    fn held_for(&self) -> Option<Duration>;

    /// Returns the next collective whose members are all ready. The driver must first send
    /// everything in `out`, as other members may wait for it, and then call [`Work::join`].
    fn due(&self) -> Option<&EngineCollective>;

    /// Runs the due collective; blocks until all members take part.
    fn join(&mut self, out: &mut Vec<Out>);

    /// Returns whether values can be read between turns: not from an engine that runs ahead, as a
    /// GPU does.
    fn can_read(&self) -> bool;

    /// Returns a tensor's value, if it is computed, in memory, and can be read without waiting.
    fn read(&mut self, lane: LaneId, tensor: TensorId) -> Option<TensorData>;

    fn stats(&self) -> WorkerStats;

    /// Describes state that has outlived its session, for tests; `None` if there is none.
    fn leftovers(&self) -> Option<String>;

    /// The estimated work ([`gt_ir::Operation::work`]) that its engine does in a second.
    fn rate(&self) -> u64;

    /// Sets what it emits. Times are of the clock that shows `now`: the dispatcher's own if in one
    /// process, or else one that the dispatcher translates.
    fn observe(&mut self, level: EmitLevel, now: Duration);

    /// Has long calls paused for other sessions from now on, if the engine can: not in a process
    /// that may fork, as a paused call has a thread. A step does not wait for such a call then: the
    /// driver waits for messages ([`Work::held_for`]) until `notify` is called, as the call is
    /// complete, or as there is something new to report ([`Work::report`]).
    fn allow_pauses(&mut self, notify: Notifier);

    /// Flushes unsent events and a report to `out`, for drivers that are idle, or as a watcher asks
    /// for the status. Returns how long it takes until a report is due, if it is not.
    fn report(&mut self, is_asked: bool, out: &mut Vec<Out>) -> Option<Duration>;

    /// Handles a restarted dispatcher: drops all lanes, and the snapshots unless the dispatcher
    /// needs them.
    fn renew(&mut self, keeps_snapshots: bool, out: &mut Vec<Out>);

    /// Adopts the snapshots of records that another process has written. Returns their number.
    fn adopt(&mut self, records: Vec<SnapshotRecord>) -> usize;

    /// Records all changes of the snapshots from now on. Returns the records of the current state.
    fn keep_records(&mut self) -> Vec<SnapshotRecord>;

    /// Stops recording changes of the snapshots.
    fn leave_records(&mut self);

    /// Returns the changes of the snapshots since the last call.
    fn take_records(&mut self) -> Vec<SnapshotRecord>;

    /// Called in the child after a fork.
    fn after_fork(&mut self);
}
