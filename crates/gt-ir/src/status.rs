//! How a dispatcher, its workers and its sessions are: what `gt top` and `gt.status()` show.

use std::time::Duration;

use crate::event::Activity;
use crate::exchange::WorkerId;
use crate::instruction::TensorId;
use crate::record;

/// A dispatcher at one moment. What is counted is counted from the beginning; times of work, from
/// when somebody began to watch.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// Since the dispatcher began.
    pub now: Duration,
    /// The session that has asked, if one has.
    pub asker: Option<u32>,
    /// In the order they came.
    pub workers: Vec<WorkerStatus>,
    pub sessions: Vec<SessionStatus>,
    /// Events that watchers did not get because they took them too slowly.
    pub dropped: u64,
}

record!(struct Status { now, asker, workers, sessions, dropped });

#[derive(Clone, PartialEq, Debug)]
pub struct WorkerStatus {
    pub id: WorkerId,
    /// As configurations name it.
    pub number: u32,
    pub name: String,
    /// Sessions whose tensors begin there.
    pub homes: u32,
    /// Instructions sent to it and not done yet, and the batches they came in.
    pub in_flight: u64,
    pub batches: u64,
    /// Since when it has been at work without a pause; nothing while it is idle.
    pub busy_since: Option<Duration>,
    /// How long it has had something to do, from the beginning.
    pub busy: Duration,
    pub report: Report,
}

record!(struct WorkerStatus {
    id, number, name, homes, in_flight, batches, busy_since, busy, report,
});

/// What a worker tells of itself now and then.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// When, on the dispatcher's clock; on its way there, on the worker's.
    pub at: Duration,
    /// From when on it has emitted events.
    pub since: Duration,
    pub engine: String,
    pub operations: u64,
    pub failed: u64,
    /// Tensors held, their bytes, and the most bytes there ever were.
    pub tensors: u64,
    pub bytes: u64,
    pub bytes_peak: u64,
    /// How long it has been at each activity.
    pub busy: [Duration; Activity::ALL.len()],
    pub sessions: Vec<Share>,
}

record!(struct Report {
    at, since, engine, operations, failed, tensors, bytes, bytes_peak, busy, sessions,
});

/// A session's part of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    pub session: u32,
    pub bytes: u64,
    /// How long the worker has been at work for it.
    pub busy: Duration,
}

record!(struct Share { session, bytes, busy });

impl Report {
    /// Whether the worker has told of itself at all.
    pub fn is_there(&self) -> bool {
        !self.engine.is_empty()
    }
}

impl Status {
    /// Whether any worker has told of itself: then what sessions hold is known.
    pub fn has_reports(&self) -> bool {
        self.workers.iter().any(|worker| worker.report.is_there())
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct SessionStatus {
    pub number: u32,
    /// As its client calls itself.
    pub name: String,
    /// Since the dispatcher began.
    pub since: Duration,
    /// Instructions received.
    pub instructions: u64,
    /// Of them, those not done yet, and those that wait for room at the workers.
    pub open: u64,
    pub queued: u64,
    /// Held on all workers, and how long these have been at work for it.
    pub bytes: u64,
    pub busy: Duration,
    pub waits: Waits,
}

record!(struct SessionStatus {
    number, name, since, instructions, open, queued, bytes, busy, waits,
});

/// What a session waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Its program does something else.
    Nothing,
    /// No worker is there.
    Workers,
    /// The workers it needs have enough to do.
    Room,
    /// Its instructions run.
    Work,
    /// A value was asked for, which a worker is to give.
    Value { tensor: TensorId, worker: String, since: Duration },
}

record!(enum Waits {
    0 => Nothing,
    1 => Workers,
    2 => Room,
    3 => Work,
    4 => Value { tensor, worker, since },
});
