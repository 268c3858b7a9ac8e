//! The status of a dispatcher, its workers and its sessions, as shown by `gt top` and
//! `gt.status()`.

use std::time::Duration;

use crate::entitlement::Entitlement;
use crate::event::Activity;
use crate::exchange::WorkerId;
use crate::instruction::TensorId;
use crate::record;

/// A snapshot. Counters count from the start of the dispatcher; times in reports, from when the
/// first watcher came.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// Since the dispatcher started.
    pub now: Duration,
    /// The session that asked, if one did.
    pub asker: Option<u32>,
    /// In the order of their arrival.
    pub workers: Vec<WorkerStatus>,
    pub sessions: Vec<SessionStatus>,
    /// By their teams and names; those without a key of their own are one, without a name.
    pub users: Vec<UserStatus>,
    /// Events dropped because a queue was full.
    pub dropped: u64,
}

record!(struct Status { now, asker, workers, sessions, users, dropped });

#[derive(Clone, PartialEq, Debug)]
pub struct WorkerStatus {
    pub id: WorkerId,
    /// The number that configurations name it by.
    pub number: u32,
    pub name: String,
    /// The sessions whose home it is.
    pub homes: u32,
    /// The weight of commands sent to it and not done.
    pub in_flight: u64,
    /// The number of batches that these belong to.
    pub batches: u64,
    /// Since when it has had commands in flight; `None` while it is idle.
    pub busy_since: Option<Duration>,
    /// The total time that it has had commands in flight.
    pub busy: Duration,
    pub report: Report,
}

record!(struct WorkerStatus {
    id, number, name, homes, in_flight, batches, busy_since, busy, report,
});

/// A worker's periodic report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// When it was made, by the dispatcher's clock; on the way there, by the worker's.
    pub at: Duration,
    /// Since when events have been on.
    pub since: Duration,
    pub engine: String,
    pub operations: u64,
    pub failed: u64,
    /// Tensors held, their bytes, and the peak of these.
    pub tensors: u64,
    pub bytes: u64,
    pub bytes_peak: u64,
    /// Tensors that were written away as there was no room, and their bytes.
    pub spilled_tensors: u64,
    pub spilled_bytes: u64,
    /// The bytes of snapshots of sessions that are kept there, in memory and on disk.
    pub snapshot_bytes: u64,
    pub snapshot_disk_bytes: u64,
    /// The time spent on each activity.
    pub busy: [Duration; Activity::ALL.len()],
}

record!(struct Report {
    at, since, engine, operations, failed, tensors, bytes, bytes_peak, spilled_tensors, spilled_bytes,
    snapshot_bytes, snapshot_disk_bytes, busy,
});

impl Report {
    /// Whether the worker has sent a report.
    pub fn is_there(&self) -> bool {
        !self.engine.is_empty()
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct SessionStatus {
    pub number: u32,
    /// The user's name, or else the client's.
    pub name: String,
    /// Its slots by number, each with the name of its worker; empty for none.
    pub slots: Vec<(u32, String)>,
    /// What it is entitled to.
    pub entitlement: Entitlement,
    /// Its part of a worker's time if all sessions have work, between 0 and 1.
    pub share: f64,
    /// When it began, since the dispatcher started.
    pub since: Duration,
    /// Instructions received.
    pub instructions: u64,
    /// The weight of those not done.
    pub open: u64,
    /// The weight of those that wait for room at the workers.
    pub queued: u64,
    /// The bytes held in the memory of all workers.
    pub bytes: u64,
    /// The bytes that were written away as there was no room.
    pub spilled: u64,
    /// The device time that it has used on all workers.
    pub busy: Duration,
    /// How often its tensors were restored.
    pub recoveries: u64,
    /// Why its tensors would be lost with a worker; empty if they would not.
    pub unkept: String,
    pub waits: Waits,
    /// The other sessions with work on the workers that it waits for; those that have used the most
    /// device time first.
    pub behind: Vec<String>,
}

record!(struct SessionStatus {
    number, name, slots, entitlement, share, since, instructions, open, queued, bytes, spilled, busy,
    recoveries, unkept, waits, behind,
});

/// A user, with all sessions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UserStatus {
    /// What each of the sessions is entitled to.
    pub entitlement: Entitlement,
    pub sessions: u32,
    /// Their part of a worker's time if all sessions have work, between 0 and 1.
    pub share: f64,
    /// The bytes that they hold in the memory of all workers.
    pub bytes: u64,
    /// The bytes that were written away as there was no room.
    pub spilled: u64,
    /// The device time that they and those that have ended have used since the dispatcher started.
    pub busy: Duration,
}

record!(struct UserStatus { entitlement, sessions, share, bytes, spilled, busy });

/// What a session waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Nothing: it has no commands in flight.
    Nothing,
    /// There is no worker.
    Workers,
    /// The windows of its lanes are full.
    Room,
    /// Its client, which has not read what was sent to it.
    Reader,
    /// Copies of its tensors, behind which what would make them again is dropped.
    Copies,
    /// Its instructions are running.
    Work,
    /// A fetched value.
    Value { tensor: TensorId, worker: String, since: Duration },
    /// Memory on a worker: of a holder's quota (as `user ada`), or of the worker (empty).
    Memory { worker: String, bytes: u64, holder: String, since: Duration },
}

record!(enum Waits {
    0 => Nothing,
    1 => Workers,
    2 => Room,
    3 => Work,
    4 => Value { tensor, worker, since },
    5 => Memory { worker, bytes, holder, since },
    6 => Reader,
    7 => Copies,
});
