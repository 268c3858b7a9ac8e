//! The messages between clients, the dispatcher, workers and watchers.

use std::time::Duration;

pub use crate::handshake::{
    Badge, Hello, PROTOCOL_VERSION, Process, Resume, Role, Welcome, schema,
};

use crate::command::{ClientCommand, WorkerCommand};
use crate::data::Content;
use crate::entitlement::{Entitlement, MemoryWait, PolicyKind, Usage};
use crate::event::Event;
use crate::exchange::{LaneId, Piece, SlotId, TransferId, WorkerId};
use crate::explain::{Explanation, PlacedTensor};
pub use crate::failure::Failure;
use crate::instruction::{RequestId, TensorId};
use crate::record;
use crate::snapshot::{Backup, Owner, Unkept};
use crate::statistics::WorkerStats;
use crate::status::{Report, Status};
use crate::stored::{OnDisk, Written};

/// The size in bytes from which a value is large: clients acknowledge the receipt of large values.
pub const LARGE_VALUE: u64 = 64 << 10;

/// A message on a link.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// The first message of a peer.
    Hello(Hello),
    /// The dispatcher's answer to a hello.
    Welcome(Welcome),
    /// The sender has received this many messages of the session.
    Acknowledge {
        received: u64,
    },
    /// The end of the link, with the reason.
    Goodbye {
        reason: String,
    },

    /// Commands of a client, or requests of a watcher, to the dispatcher.
    Stream(Vec<ClientCommand>),
    /// Commands for a lane of a worker.
    Work {
        lane: LaneId,
        commands: Vec<WorkerCommand>,
    },
    /// Returns credit to a client: commands of this weight are complete.
    Done(u64),
    /// The client waits for credit: it has sent all that it has issued.
    Waiting,
    /// A lane has completed commands of this weight; `usage` has the device time since its previous
    /// report, and the bytes that it holds now.
    LaneDone {
        lane: LaneId,
        weight: u64,
        usage: Usage,
    },
    /// A command is inconsistent with a lane's state: the dispatcher must end the session.
    LaneBroken {
        lane: LaneId,
        reason: String,
    },
    /// A lane has begun to wait for memory, or no longer waits (`None`).
    MemoryWait {
        lane: LaneId,
        wait: Option<MemoryWait>,
    },
    /// All commands of the session have reached the lane that waits for memory: the waiting command
    /// fails once no other lane is about to free any, or at once if it `has_waited` long enough.
    MemoryTimeout {
        lane: LaneId,
        number: u64,
        has_waited: bool,
    },
    /// Sends workers a session's entitlement.
    Admit {
        session: u32,
        entitlement: Entitlement,
    },
    /// Sends workers the scheduling policy.
    Divide(PolicyKind),
    /// A worker has undone a step of a lane; the dispatcher forwards this to the client.
    StepUndone {
        lane: LaneId,
        failure: Box<Failure>,
    },
    /// A notice to a client about its session.
    Notice {
        text: String,
    },
    /// A worker must drop a session, including queued commands.
    EndSession {
        session: u32,
    },

    /// The answer to a fetch.
    Value {
        request: RequestId,
        result: Result<Content, Failure>,
    },
    /// The answer to a save: the blocks written, by one worker or by all.
    Saved {
        request: RequestId,
        result: Result<Vec<Written>, Failure>,
    },
    /// The values that a worker's driver has read from files for a tensor of a lane.
    Loaded {
        lane: LaneId,
        tensor: TensorId,
        result: Result<Content, Failure>,
    },
    /// A worker's driver has written a tensor of a lane into the file of this number, or failed to.
    Spilled {
        lane: LaneId,
        tensor: TensorId,
        number: u64,
        result: Result<OnDisk, Failure>,
    },
    /// A worker's driver has written a value of a snapshot to disk and mapped it from there, or
    /// failed to.
    Shelved {
        owner: Owner,
        tensor: TensorId,
        result: Result<Content, Failure>,
    },
    /// A client has received a large value ([`LARGE_VALUE`]): the dispatcher may send others.
    Received {
        request: RequestId,
    },
    /// The receiver has mapped a shared block; its owner may release it.
    Release {
        token: u128,
    },
    /// The answer to a request for statistics; a worker's covers itself only.
    Statistics {
        request: RequestId,
        workers: Vec<WorkerStats>,
    },
    /// Withdraws a request from a worker's lane.
    Cancel {
        lane: LaneId,
        request: RequestId,
    },
    /// The answer to the beginning and to the end of an explanation.
    Explained {
        request: RequestId,
        explanation: Explanation,
    },
    /// The answer to a request for a tensor's placement.
    Located {
        request: RequestId,
        result: Result<Vec<PlacedTensor>, Failure>,
    },
    /// The answer to a request for the status.
    Status {
        request: RequestId,
        status: Box<Status>,
    },

    /// A block, from worker to worker.
    Piece {
        sender: WorkerId,
        piece: Piece,
    },
    /// Introduces a worker to another: its address for pieces, and its machine.
    Neighbour {
        worker: WorkerId,
        name: String,
        endpoint: String,
        machine: String,
    },
    /// A worker could not send a piece to a lane; the dispatcher fails the lane's part.
    Undelivered {
        transfer: TransferId,
        to: LaneId,
        reason: String,
    },
    /// Values of a snapshot: to the worker that keeps a copy of them, or to the dispatcher.
    Backup(Box<Backup>),
    /// A slot's snapshot is stored (`Ok` with its size in bytes), or could not be.
    Backed {
        session: u32,
        slot: SlotId,
        snapshot: u64,
        result: Result<u64, Unkept>,
    },
    /// Requests a client's confirmation that it has received all messages before this one.
    Confirm {
        snapshot: u64,
    },
    Confirmed {
        snapshot: u64,
    },
    /// Workers drop a session's snapshots before the number `next`, except `snapshot`; all of the
    /// session's snapshots if it is `None`.
    Retain {
        session: u32,
        snapshot: Option<u64>,
        next: u64,
    },
    /// A worker drops the snapshots of all other sessions, and the lanes with numbers before
    /// `oldest`, which belong to a previous dispatcher.
    RetainSessions {
        sessions: Vec<u32>,
        oldest: u32,
    },
    /// A worker that stores a slot's snapshot sends it to the worker that restores it, or to the
    /// dispatcher if `to` is `None`.
    HandOver {
        session: u32,
        slot: SlotId,
        snapshot: u64,
        to: Option<WorkerId>,
    },
    /// Informs workers that another is lost, and will send nothing more.
    WorkerLost {
        worker: WorkerId,
        name: String,
    },
    /// A lane is ready for a collective with these members (`Ok` with its group's epoch), or has
    /// failed.
    Ready {
        lane: LaneId,
        transfer: TransferId,
        members: Vec<SlotId>,
        result: Result<u64, Failure>,
    },
    /// Other members of a collective wait for a lane.
    Awaited {
        lane: LaneId,
    },
    /// All members are ready: each worker starts collectives in the order of `sequence`, which is
    /// the same on every worker. Or a member has failed, and the collective is cancelled.
    Join {
        lane: LaneId,
        transfer: TransferId,
        sequence: u64,
        result: Result<u64, Failure>,
    },

    /// Turns a client's or worker's events on or off; `sent` is the dispatcher's time.
    Observe {
        on: bool,
        sent: Duration,
    },
    /// The immediate answer to `Observe`; `here` is the time of the emitter's clock.
    Observed {
        sent: Duration,
        here: Duration,
    },
    /// A worker's report while it is observed, in times of its own clock.
    Report(Box<Report>),
    /// Events from a client or worker (in times of its own clock) or to a watcher; `dropped` more
    /// were lost.
    Events {
        events: Vec<Event>,
        dropped: u64,
    },
    /// A watcher polls for up to `limit` events.
    Watch {
        limit: u32,
    },
    /// The names of the entities that a watcher's events refer to.
    Names(Vec<(Named, String)>),
}

record!(enum Message {
    1 => Hello(hello),
    2 => Welcome(welcome),
    3 => Goodbye { reason },
    4 => Stream(commands),
    5 => Work { lane, commands },
    6 => Done(weight),
    7 => LaneDone { lane, weight, usage },
    8 => EndSession { session },
    9 => Value { request, result },
    10 => Release { token },
    11 => Statistics { request, workers },
    12 => Cancel { lane, request },
    13 => Explained { request, explanation },
    14 => Located { request, result },
    15 => Status { request, status },
    16 => Piece { sender, piece },
    17 => Neighbour { worker, name, endpoint, machine },
    18 => Undelivered { transfer, to, reason },
    19 => WorkerLost { worker, name },
    20 => Ready { lane, transfer, members, result },
    21 => Join { lane, transfer, sequence, result },
    22 => Observe { on, sent },
    23 => Observed { sent, here },
    24 => Report(report),
    25 => Events { events, dropped },
    26 => Watch { limit },
    27 => Names(names),
    28 => LaneBroken { lane, reason },
    29 => Saved { request, result },
    30 => Loaded { lane, tensor, result },
    31 => Admit { session, entitlement },
    32 => Divide(policy_kind),
    33 => Notice { text },
    34 => MemoryWait { lane, wait },
    35 => MemoryTimeout { lane, number, has_waited },
    36 => Spilled { lane, tensor, number, result },
    37 => Received { request },
    38 => Awaited { lane },
    39 => Backup(backup),
    40 => Backed { session, slot, snapshot, result },
    41 => Retain { session, snapshot, next },
    42 => HandOver { session, slot, snapshot, to },
    43 => Acknowledge { received },
    44 => Confirm { snapshot },
    45 => Confirmed { snapshot },
    46 => RetainSessions { sessions, oldest },
    47 => Shelved { owner, tensor, result },
    48 => StepUndone { lane, failure },
    49 => Waiting,
});

impl Message {
    /// Returns its name in errors.
    pub const fn name(&self) -> &'static str {
        match self {
            Message::Hello(_) => "a hello",
            Message::Welcome(_) => "a welcome",
            Message::Acknowledge { .. } | Message::Confirm { .. } | Message::Confirmed { .. } => {
                "an acknowledgement"
            }
            Message::Goodbye { .. } => "a goodbye",
            Message::Stream(_) => "a stream",
            Message::Work { .. } => "work",
            Message::Done(_) | Message::LaneDone { .. } => "credit",
            Message::Waiting => "a wait for credit",
            Message::Admit { .. } | Message::Divide(_) => "a policy",
            Message::Notice { .. } | Message::StepUndone { .. } => "a notice",
            Message::MemoryWait { .. } | Message::MemoryTimeout { .. } => "a wait for memory",
            Message::EndSession { .. } | Message::LaneBroken { .. } => "the end of a session",
            Message::Value { .. } => "a value",
            Message::Saved { .. } => "the result of a save",
            Message::Loaded { .. } | Message::Spilled { .. } | Message::Shelved { .. } => {
                "the result of a file access"
            }
            Message::Release { .. } => "a release",
            Message::Received { .. } => "the receipt of a value",
            Message::Statistics { .. } => "statistics",
            Message::Cancel { .. } => "a cancellation",
            Message::Explained { .. } | Message::Located { .. } => "an explanation",
            Message::Status { .. } | Message::Report(_) => "a status",
            Message::Piece { .. } => "a piece",
            Message::Neighbour { .. } => "a neighbour",
            Message::Undelivered { .. } => "a failed delivery",
            Message::Backup(_)
            | Message::Backed { .. }
            | Message::Retain { .. }
            | Message::RetainSessions { .. }
            | Message::HandOver { .. } => "a snapshot",
            Message::WorkerLost { .. } => "the loss of a worker",
            Message::Ready { .. } | Message::Awaited { .. } | Message::Join { .. } => {
                "a collective"
            }
            Message::Observe { .. } | Message::Observed { .. } => "a request for events",
            Message::Events { .. } | Message::Names(_) => "events",
            Message::Watch { .. } => "a watcher's request",
        }
    }

    /// Returns the client's request that it answers, if any.
    pub const fn answers(&self) -> Option<RequestId> {
        match self {
            Message::Value { request, .. }
            | Message::Saved { request, .. }
            | Message::Statistics { request, .. }
            | Message::Explained { request, .. }
            | Message::Located { request, .. }
            | Message::Status { request, .. } => Some(*request),
            _ => None,
        }
    }
}

/// An entity with a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Named {
    Session(u32),
    Worker(WorkerId),
    Signal {
        session: u32,
        number: u32,
    },
    /// The worker that a session's slot is on.
    Slot {
        session: u32,
        slot: SlotId,
    },
}

record!(enum Named {
    0 => Session(number),
    1 => Worker(worker),
    2 => Signal { session, number },
    3 => Slot { session, slot },
});
