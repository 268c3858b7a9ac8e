//! Messages between a worker and the server.

use std::time::Duration;

use super::{Failure, kinds};
use crate::command::WorkerCommand;
use crate::data::Content;
use crate::entitlement::{Entitlement, MemoryWait, PolicyKind, Usage};
use crate::event::{EmitLevel, Event};
use crate::exchange::Piece;
use crate::ids::{Incarnation, LaneId, SessionId, SlotId, TransferId, WorkerId};
use crate::instruction::RequestId;
use crate::record;
use crate::snapshot::{Backup, Unkept};
use crate::statistics::WorkerStats;
use crate::status::Report;
use crate::stored::Written;

/// From the server to a worker.
#[derive(Clone, PartialEq, Debug)]
pub enum ServerToWorker {
    /// Commands for a lane.
    Work { lane: LaneId, commands: Vec<WorkerCommand> },
    /// Withdraws a request from a lane.
    Cancel { lane: LaneId, request: RequestId },
    /// The worker drops a session's lanes, including queued commands.
    EndSession { incarnation: Incarnation },
    /// A session's entitlement.
    Admit { incarnation: Incarnation, entitlement: Entitlement },
    /// The scheduling policy.
    SetPolicy(PolicyKind),
    /// All commands of the session have reached the lane that waits for memory: the waiting command
    /// fails once no other lane is about to free any, or at once if it `has_waited` long enough.
    MemoryTimeout { lane: LaneId, number: u64, has_waited: bool },
    /// Other members of a collective wait for a lane.
    CollectiveWaits { lane: LaneId },
    /// All members are ready (`Ok` with the group's epoch): each worker starts collectives in the
    /// order of `sequence`, which is the same on every worker. Or a member has failed, and the
    /// collective is cancelled.
    StartCollective {
        lane: LaneId,
        transfer: TransferId,
        sequence: u64,
        result: Result<u64, Failure>,
    },
    /// A failure in place of the piece that another worker could not send.
    Piece(Piece),
    /// Values of a snapshot that the server stores, for the worker that restores them.
    Backup(Box<Backup>),
    /// The worker drops a session's snapshots before the number `next`, except `snapshot`; all of
    /// the session's snapshots if it is `None`.
    Retain { session: SessionId, snapshot: Option<u64>, next: u64 },
    /// The worker drops the snapshots of all other sessions, and takes none of sessions before
    /// `since`; it drops the lanes before `oldest`. Both belong to a previous server.
    RetainSessions { sessions: Vec<SessionId>, since: SessionId, oldest: Incarnation },
    /// The worker sends a slot's snapshot that it stores to the worker that restores it, or to the
    /// server if `to` is `None`.
    HandOver { session: SessionId, slot: SlotId, snapshot: u64, to: Option<WorkerId> },
    /// Introduces another worker: its address for pieces, and its machine.
    Neighbour { worker: WorkerId, name: String, endpoint: String, machine: String },
    /// Another worker is lost, and will send nothing more.
    WorkerLost { worker: WorkerId, name: String },
    /// The receiver has mapped a shared block of the worker's; the worker may release it.
    Release { token: u128 },
    /// Sets what the worker emits; `sent` is the server's time.
    Observe { level: EmitLevel, sent: Duration },
    /// The worker's drain is done, and a goodbye follows (`None`); or it was refused or given up, for
    /// this reason.
    DrainEnded { refused: Option<String> },
}

record!(enum ServerToWorker {
    1 => Work { lane, commands },
    2 => Cancel { lane, request },
    3 => EndSession { incarnation },
    4 => Admit { incarnation, entitlement },
    5 => SetPolicy(policy_kind),
    6 => MemoryTimeout { lane, number, has_waited },
    7 => CollectiveWaits { lane },
    8 => StartCollective { lane, transfer, sequence, result },
    9 => Piece(piece),
    10 => Backup(backup),
    11 => Retain { session, snapshot, next },
    12 => RetainSessions { sessions, since, oldest },
    13 => HandOver { session, slot, snapshot, to },
    14 => Neighbour { worker, name, endpoint, machine },
    15 => WorkerLost { worker, name },
    16 => Release { token },
    17 => Observe { level, sent },
    18 => DrainEnded { refused },
});

/// From a worker to the server.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkerToServer {
    /// A lane has completed commands of this weight; `usage` has the device time since its previous
    /// report, and the bytes that it holds now.
    LaneDone { lane: LaneId, weight: u64, usage: Usage },
    /// A command is inconsistent with a lane's state: the server must end the session.
    LaneBroken { lane: LaneId, reason: String },
    /// The worker has undone a step of a lane.
    StepUndone { lane: LaneId, failure: Box<Failure> },
    /// A lane has begun to wait for memory, or no longer waits (`None`).
    MemoryWait { lane: LaneId, wait: Option<MemoryWait> },
    /// The answer to a fetch.
    Value { request: RequestId, result: Result<Content, Failure> },
    /// The answer to a save: the blocks written.
    Saved { request: RequestId, result: Result<Vec<Written>, Failure> },
    /// The answer to a request for statistics.
    Statistics { request: RequestId, statistics: Box<WorkerStats> },
    /// A lane is ready for a collective with these members (`Ok` with its group's epoch), or has
    /// failed.
    CollectiveReady {
        lane: LaneId,
        transfer: TransferId,
        members: Vec<SlotId>,
        result: Result<u64, Failure>,
    },
    /// The worker could not send a piece to a lane; the server fails the lane's part.
    Undelivered { transfer: TransferId, to: LaneId, reason: String },
    /// Values of a snapshot, for the server to store.
    Backup(Box<Backup>),
    /// A slot's snapshot is stored (`Ok` with its size in bytes), or could not be.
    BackupStored { session: SessionId, slot: SlotId, snapshot: u64, result: Result<u64, Unkept> },
    /// The worker has mapped a shared block; its owner may release it.
    Release { token: u128 },
    /// The immediate answer to [`ServerToWorker::Observe`]; `here` is the time of the worker's
    /// clock.
    Observed { sent: Duration, here: Duration },
    /// The worker's report while it is observed, in times of its own clock.
    Report(Box<Report>),
    /// Events, in times of the worker's clock; `dropped` more were lost. The server fills in their
    /// sessions from the lanes' incarnations.
    Events { events: Vec<(Incarnation, Event)>, dropped: u64 },
    /// A lane waits for values of a publication's slot that the worker does not have.
    Needs { publication: SessionId, slot: SlotId },
    /// The worker is to be stopped after this time: what it has is handed over first.
    Drain { within: Duration },
    /// How fast its links to other workers were lately; those of which nothing new is known are left
    /// out.
    Links(Vec<LinkRate>),
    /// A piece for a lane of another worker, to which no link can be opened.
    Relay { to: WorkerId, piece: Piece },
}

record!(enum WorkerToServer {
    1 => LaneDone { lane, weight, usage },
    2 => LaneBroken { lane, reason },
    3 => StepUndone { lane, failure },
    4 => MemoryWait { lane, wait },
    5 => Value { request, result },
    6 => Saved { request, result },
    7 => Statistics { request, statistics },
    8 => CollectiveReady { lane, transfer, members, result },
    9 => Undelivered { transfer, to, reason },
    10 => Backup(backup),
    11 => BackupStored { session, slot, snapshot, result },
    12 => Release { token },
    13 => Observed { sent, here },
    14 => Report(report),
    15 => Events { events, dropped },
    16 => Needs { publication, slot },
    17 => Drain { within },
    18 => Links(links),
    19 => Relay { to, piece },
});

/// How fast a worker's link to another one was lately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkRate {
    pub to: WorkerId,
    pub bytes_per_second: u64,
}

record!(struct LinkRate { to, bytes_per_second });

kinds!(ServerToWorker, WorkerToServer);
