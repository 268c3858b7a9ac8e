//! What the parts of GT say to each other.

use std::time::Duration;

use crate::data::Content;
use crate::event::Event;
use crate::exchange::{Piece, TransferId, WorkerId};
use crate::explain::{Explanation, PlacedTensor};
use crate::fabric::Fabric;
use crate::instruction::{Command, RequestId, SourceId, TensorId};
use crate::operation::Meta;
use crate::status::{Report, Status};

/// The version of the messages; both ends of a link must have the same.
pub const PROTOCOL_VERSION: u32 = 1;

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

/// Everything that is sent on a link between two parts.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// The first message of a client or worker.
    Hello(Hello),
    /// The dispatcher's answer to a hello.
    Welcome(Welcome),
    /// Commands: from a client to the dispatcher, or from the dispatcher to a worker.
    Stream(Vec<Command>),
    /// This many more commands of the stream are done with (credit for sending more).
    Done(u64),
    /// The answer to a fetch.
    Value { request: RequestId, result: Result<Content, Failure> },
    /// The receiver has mapped a shared block; its owner may let go of it.
    Release { token: u128 },
    /// The answer to a request for statistics; from a worker, about itself alone.
    Statistics { request: RequestId, workers: Vec<WorkerStats> },
    /// A worker's tensors of a session; those that failed with the reason.
    Described { session: u32, tensors: Vec<(TensorId, Result<Meta, Failure>)> },
    /// A block for another worker: from worker to worker.
    Piece(Piece),
    /// Where another worker takes pieces, and the machine it is on. For the other workers.
    Neighbour { worker: WorkerId, name: String, endpoint: String, machine: String },
    /// A worker could not send another one its piece; the dispatcher tells that one.
    Undelivered { transfer: TransferId, to: WorkerId, reason: String },
    /// A worker is gone: nothing more will come from it. For the other workers.
    WorkerLost { worker: WorkerId, name: String },
    /// The answer to the beginning and to the end of an explanation.
    Explained { request: RequestId, explanation: Explanation },
    /// The answer to where a tensor is.
    Located { request: RequestId, result: Result<Vec<PlacedTensor>, Failure> },
    /// The answer to a question for the status.
    Status { request: RequestId, status: Box<Status> },
    /// Whether events are to be noted, for clients and workers, and when this was sent.
    Observe { on: bool, sent: Duration },
    /// The answer to that, at once: then the clock by which events are noted showed `here`.
    Observed { sent: Duration, here: Duration },
    /// What a worker tells of itself while it is observed, by its own clock.
    Report(Box<Report>),
    /// Events of a client or worker, by its own clock, or for a watcher; so many more were lost.
    Events { events: Vec<Event>, dropped: u64 },
    /// A watcher asks for what there is, up to so many events.
    Watch { limit: u32 },
    /// What those are called who stand in events that a watcher gets.
    Names(Vec<(Named, String)>),
    /// The link ends here, and why.
    Goodbye { reason: String },
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
}

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

/// Who or what has a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Named {
    Session(u32),
    Worker(WorkerId),
    Signal { session: u32, number: u32 },
}

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

/// What a worker has done since it started.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkerStats {
    pub name: String,
    pub engine: String,
    pub operations_total: u64,
    pub operations_failed: u64,
    /// Of all operations, those run as parts of plans.
    pub operations_compiled: u64,
    /// Tensors held, and their bytes.
    pub tensors: u64,
    pub bytes: u64,
    /// The most bytes held at once.
    pub bytes_peak: u64,
    /// Of all operations, those that came as passes of hot paths.
    pub hot_instructions: u64,
    /// Hot paths that were told, and that are known now.
    pub unique_sequences: u64,
    pub hot_sequences: u64,
    /// What was run most of them.
    pub top_sequences: Vec<Sequence>,
    pub compilation: CompilationStats,
}

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
