//! What the parts of GT say to each other.

use std::time::Duration;

use crate::command::{ClientCommand, WorkerCommand};
use crate::data::Content;
use crate::event::Event;
use crate::exchange::{LaneId, Piece, SlotId, TransferId, WorkerId};
use crate::explain::{Explanation, PlacedTensor};
use crate::fabric::Fabric;
use crate::instruction::{RequestId, SourceId};
use crate::record;
use crate::status::{Report, Status};

/// The version of the messages; both ends of a link must have the same.
pub const PROTOCOL_VERSION: u32 = 2;

/// What a peer may do, as its link proves it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    Client,
    Worker,
    Watcher,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Role::Client => "client",
            Role::Worker => "worker",
            Role::Watcher => "watcher",
        }
    }
}

record!(enum Role { 0 => Client, 1 => Worker, 2 => Watcher });

/// Everything that is sent on a link between two parts.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// The first message of a client or worker.
    Hello(Hello),
    /// The dispatcher's answer to a hello.
    Welcome(Welcome),
    /// The link ends here, and why.
    Goodbye { reason: String },

    /// A client's commands, and a watcher's questions, to the dispatcher.
    Stream(Vec<ClientCommand>),
    /// Commands for a lane of a worker.
    Work { lane: LaneId, commands: Vec<WorkerCommand> },
    /// This many more commands of a client's stream are done with (credit for sending more).
    Done(u64),
    /// The same of a worker's lane.
    LaneDone { lane: LaneId, weight: u64 },
    /// A lane was told something that does not fit what it has: its session is to end.
    LaneBroken { lane: LaneId, reason: String },
    /// A worker is to forget a session, whatever of it still waits.
    EndSession { session: u32 },

    /// The answer to a fetch.
    Value { request: RequestId, result: Result<Content, Failure> },
    /// The receiver has mapped a shared block; its owner may let go of it.
    Release { token: u128 },
    /// The answer to a request for statistics; from a worker, about itself alone.
    Statistics { request: RequestId, workers: Vec<WorkerStats> },
    /// Nobody waits for a worker's answer to a request any more.
    Cancel { lane: LaneId, request: RequestId },
    /// The answer to the beginning and to the end of an explanation.
    Explained { request: RequestId, explanation: Explanation },
    /// The answer to where a tensor is.
    Located { request: RequestId, result: Result<Vec<PlacedTensor>, Failure> },
    /// The answer to a question for the status.
    Status { request: RequestId, status: Box<Status> },

    /// A block for another worker: from worker to worker.
    Piece { sender: WorkerId, piece: Piece },
    /// Where another worker takes pieces, and the machine it is on. For the other workers.
    Neighbour { worker: WorkerId, name: String, endpoint: String, machine: String },
    /// A worker could not send a lane its piece; the dispatcher tells that lane.
    Undelivered { transfer: TransferId, to: LaneId, reason: String },
    /// A worker is gone: nothing more will come from it. For the other workers.
    WorkerLost { worker: WorkerId, name: String },
    /// A lane is ready for a joint exchange with these members, or has nothing to give.
    Ready { lane: LaneId, transfer: TransferId, members: Vec<SlotId>, result: Result<u64, Failure> },
    /// All members are ready, and join in the order of these numbers, which is the same on every
    /// worker; or one has failed, and nobody joins.
    Join { lane: LaneId, transfer: TransferId, sequence: u64, result: Result<u64, Failure> },

    /// Whether events are to be emitted, for clients and workers, and when this was sent.
    Observe { on: bool, sent: Duration },
    /// The answer to that, at once: then the clock of events showed `here`.
    Observed { sent: Duration, here: Duration },
    /// What a worker tells of itself while it is observed, by its own clock.
    Report(Box<Report>),
    /// Events of a client or worker, by its own clock, or for a watcher; so many more were lost.
    Events { events: Vec<Event>, dropped: u64 },
    /// A watcher asks for what there is, up to so many events.
    Watch { limit: u32 },
    /// What those are called who stand in events that a watcher gets.
    Names(Vec<(Named, String)>),
}

record!(enum Message {
    1 => Hello(hello),
    2 => Welcome(welcome),
    3 => Goodbye { reason },
    4 => Stream(commands),
    5 => Work { lane, commands },
    6 => Done(weight),
    7 => LaneDone { lane, weight },
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
});

impl Message {
    /// What it is called in errors.
    pub const fn name(&self) -> &'static str {
        match self {
            Message::Hello(_) => "a hello",
            Message::Welcome(_) => "a welcome",
            Message::Goodbye { .. } => "a goodbye",
            Message::Stream(_) => "a stream",
            Message::Work { .. } => "work",
            Message::Done(_) | Message::LaneDone { .. } => "credit",
            Message::EndSession { .. } | Message::LaneBroken { .. } => "the end of a session",
            Message::Value { .. } => "a value",
            Message::Release { .. } => "a release",
            Message::Statistics { .. } => "statistics",
            Message::Cancel { .. } => "a cancellation",
            Message::Explained { .. } | Message::Located { .. } => "an explanation",
            Message::Status { .. } | Message::Report(_) => "a status",
            Message::Piece { .. } => "a piece",
            Message::Neighbour { .. } => "a neighbour",
            Message::Undelivered { .. } => "a piece's fate",
            Message::WorkerLost { .. } => "the loss of a worker",
            Message::Ready { .. } | Message::Join { .. } => "a joint exchange",
            Message::Observe { .. } | Message::Observed { .. } => "a question for events",
            Message::Events { .. } | Message::Names(_) => "events",
            Message::Watch { .. } => "a watcher's question",
        }
    }

    /// The request that it answers, for a client.
    pub const fn answers(&self) -> Option<RequestId> {
        match self {
            Message::Value { request, .. }
            | Message::Statistics { request, .. }
            | Message::Explained { request, .. }
            | Message::Located { request, .. }
            | Message::Status { request, .. } => Some(*request),
            _ => None,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Hello {
    pub version: u32,
    /// A hash of the instruction set, so that ids mean the same at both ends.
    pub schema: u64,
    pub role: Role,
    /// What it calls itself: a worker's id, a client's process.
    pub name: String,
    /// Equal for processes that can share memory; empty for none.
    pub machine: String,
    /// Where a worker takes pieces from others; empty where they need no address.
    pub endpoint: String,
    /// Where a worker's engine joins others, if it does.
    pub fabric: Option<Fabric>,
    /// How much work a worker's engine does in a second, as an estimate: see
    /// [`crate::Operation::work`].
    pub rate: u64,
}

record!(struct Hello { version, schema, role, name, machine, endpoint, fabric, rate });

#[derive(Clone, PartialEq, Debug)]
pub struct Welcome {
    /// The client's session, or the worker's number.
    pub session: u32,
    /// What the dispatcher calls the peer: no two workers have one name.
    pub name: String,
    /// How many commands may be under way at once.
    pub window: u64,
    /// The dispatcher's machine, as in the hello.
    pub machine: String,
}

record!(struct Welcome { session, name, window, machine });

/// Who or what has a name.
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

/// Why a value could not be had: what failed, where, and on whose line.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{operation}: {reason}")]
pub struct Failure {
    /// The operation that failed, as `explain` would write it.
    pub operation: String,
    pub reason: String,
    /// The worker it failed on; empty where none was reached.
    pub worker: String,
    /// The line that issued it; only its client can tell which.
    pub line: SourceId,
}

record!(struct Failure { operation, reason, worker, line });

/// What a worker has done since it started.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkerStats {
    pub name: String,
    pub engine: String,
    pub operations_total: u64,
    pub operations_failed: u64,
    /// Of all operations, those run as parts of plans.
    pub operations_compiled: u64,
    /// Instructions that were not run since nobody wanted what they make any more.
    pub operations_skipped: u64,
    /// Tensors held, and their bytes.
    pub tensors: u64,
    pub bytes: u64,
    /// The most bytes held at once.
    pub bytes_peak: u64,
    /// Of all operations, those that came as iterations of hot paths.
    pub hot_instructions: u64,
    /// Hot paths that were told, and that are known now.
    pub unique_sequences: u64,
    pub hot_sequences: u64,
    /// What was run most of them.
    pub top_sequences: Vec<Sequence>,
    pub compilation: CompilationStats,
}

record!(struct WorkerStats {
    name,
    engine,
    operations_total,
    operations_failed,
    operations_compiled,
    operations_skipped,
    tensors,
    bytes,
    bytes_peak,
    hot_instructions,
    unique_sequences,
    hot_sequences,
    top_sequences,
    compilation,
});

/// A sequence of operations that is run again and again.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sequence {
    /// The first of its operations, by name.
    pub operations: String,
    pub length: u64,
    pub repetitions: u64,
    /// What they took together.
    pub time: Duration,
}

record!(struct Sequence { operations, length, repetitions, time });

/// What a worker's engine has made ready to be run many times.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CompilationStats {
    /// Programs that are kept,
    pub cache_size: u64,
    /// how often one was there when it was looked for, and how often not.
    pub cache_hits: u64,
    pub cache_misses: u64,
    /// Programs that were found to give what their operations give one by one,
    pub checked: u64,
    /// and those that could not be made, or gave something else.
    pub failures: u64,
    pub compile_time: Duration,
    /// How much longer all runs would have taken operation by operation, as far as that was
    /// measured.
    pub time_saved: Duration,
}

record!(struct CompilationStats {
    cache_size,
    cache_hits,
    cache_misses,
    checked,
    failures,
    compile_time,
    time_saved,
});

/// A hash of the instruction set: names, ids, arities and attributes.
pub fn schema() -> u64 {
    // FNV-1a, stable across builds and machines.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut eat = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for operation in crate::ops::ALL {
        eat(&operation.id.to_le_bytes());
        eat(operation.name.as_bytes());
        for attribute in operation.attributes {
            eat(attribute.name.as_bytes());
            eat(format!("{:?}", attribute.kind).as_bytes());
        }
    }
    hash
}
