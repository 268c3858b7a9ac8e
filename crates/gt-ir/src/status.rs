//! The status of a dispatcher, its workers and its sessions, as shown by `gt top` and
//! `gt.status()`; [`cluster_event`]: what happened to them, which [`counters`] count;
//! [`inspection`]: the details of a session.

pub mod cluster_event;
pub mod counters;
pub mod inspection;

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use crate::entitlement::Entitlement;
use crate::event::Activity;
use crate::gpu::GpuStatus;
use crate::ids::{SessionId, WorkerId};
use crate::instruction::TensorId;
use crate::origin::SessionOrigin;
use crate::publication::PublicationStatus;
use crate::record;
use crate::statistics::{CompilationStats, Sequence};
use cluster_event::ClusterEvent;
use counters::ClusterCounters;

/// The status at one moment. Counters count from the start of the dispatcher; times in reports,
/// from when the first watcher connected.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Status {
    /// The time since the dispatcher started.
    pub now: Duration,
    /// The session that requested it, if any.
    pub asker: Option<SessionId>,
    /// The workers, in the order in which they joined.
    pub workers: Vec<WorkerStatus>,
    pub sessions: Vec<SessionStatus>,
    /// Sorted by team and name; all users without a key of their own are one entry, without a name.
    pub users: Vec<UserStatus>,
    /// The teams of the users, sorted by name; users without a team are one, without a name.
    pub teams: Vec<TeamStatus>,
    /// What is published, sorted by name and version.
    pub publications: Vec<PublicationStatus>,
    /// The newest cluster events that the watcher does not have, in their order; none for clients.
    pub cluster_events: Vec<ClusterEvent>,
    /// The last hour in minutes, the oldest first; none for clients.
    pub hour: Vec<MinuteStatus>,
    /// What was counted since the dispatcher started; zeros for clients.
    pub counters: Box<ClusterCounters>,
    /// Events dropped because a queue was full.
    pub dropped: u64,
}

record!(struct Status {
    now, asker, workers, sessions, users, teams, publications, cluster_events, hour, counters, dropped,
});

#[derive(Clone, PartialEq, Debug)]
pub struct WorkerStatus {
    pub id: WorkerId,
    /// The number by which configurations refer to it.
    pub number: u32,
    pub name: String,
    /// The name of its machine, and the rack of that; empty if unknown.
    pub host: String,
    pub rack: String,
    /// Whether it drains: it hands over what it has, and ends.
    pub is_draining: bool,
    /// The number of sessions whose home it is.
    pub homes: u32,
    /// The weight of commands sent to it and not done.
    pub in_flight: u64,
    /// The number of batches that these belong to.
    pub batches: u64,
    /// The time since which it has had commands in flight; `None` while it is idle.
    pub busy_since: Option<Duration>,
    /// The total time that it has had commands in flight.
    pub busy: Duration,
    pub report: Report,
}

record!(struct WorkerStatus {
    id, number, name, host, rack, is_draining, homes, in_flight, batches, busy_since, busy, report,
});

/// A worker's periodic report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// When it was made, by the dispatcher's clock; in the worker's message, by the worker's.
    pub at: Duration,
    /// The time since which events have been on.
    pub since: Duration,
    pub engine: String,
    /// The version of its program.
    pub version: String,
    /// The bytes that its tensors may take in memory; `None` without a limit.
    pub memory_limit: Option<u64>,
    pub operations: u64,
    pub failed: u64,
    /// Tensors held, their bytes, and the peak of these.
    pub tensors: u64,
    pub bytes: u64,
    pub bytes_peak: u64,
    /// Spilled tensors, and their bytes.
    pub spilled_tensors: u64,
    pub spilled_bytes: u64,
    /// The bytes of the snapshots that are stored on the worker, in memory and on disk.
    pub snapshot_bytes: u64,
    pub snapshot_disk_bytes: u64,
    /// The time spent on each activity.
    pub busy: [Duration; Activity::ALL.len()],
    /// Its GPU, if NVML knows one.
    pub gpu: Option<GpuStatus>,
    pub hot_paths: HotPathReport,
}

record!(struct Report {
    at, since, engine, version, memory_limit, operations, failed, tensors, bytes, bytes_peak, spilled_tensors, spilled_bytes,
    snapshot_bytes, snapshot_disk_bytes, busy, gpu, hot_paths,
});

/// What is hot on a worker, and what its engine has compiled of that.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HotPathReport {
    /// The number of all operations that were in iterations of hot paths.
    pub instructions: u64,
    /// Hot paths defined at present.
    pub sequences: u64,
    pub compilation: CompilationStats,
    /// The programs that have run the most operations.
    pub top: Vec<Sequence>,
}

record!(struct HotPathReport { instructions, sequences, compilation, top });

impl Report {
    /// Returns whether the worker has sent a report.
    pub fn is_received(&self) -> bool {
        !self.engine.is_empty()
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct SessionStatus {
    pub number: SessionId,
    /// Its name, such as `train.py ada@box #3`.
    pub name: String,
    /// Its program, as its client says.
    pub origin: SessionOrigin,
    /// Its slots by number, each with the name of its worker; empty for none.
    pub slots: Vec<(u32, String)>,
    pub entitlement: Entitlement,
    /// Its share of a worker's time if all sessions have work, between 0 and 1.
    pub share: f64,
    /// When it began, since the dispatcher started.
    pub since: Duration,
    /// Instructions received.
    pub instructions: u64,
    /// How many of those are parts of iterations of hot paths.
    pub hot_instructions: u64,
    /// The weight of those not done.
    pub open: u64,
    /// The weight of those that wait for room at the workers.
    pub queued: u64,
    /// The bytes held in the memory of all workers.
    pub bytes: u64,
    /// The spilled bytes.
    pub spilled: u64,
    /// The device time that it has used on all workers.
    pub busy: Duration,
    /// How long devices were kept idle for it as it was about to ask again, which is a part of that
    /// time, and how often.
    pub anticipated: Duration,
    pub anticipations: u64,
    pub windows: [WindowUse; WINDOWS.len()],
    /// The number of times that its tensors were restored.
    pub recoveries: u64,
    /// Why its tensors would be lost if a worker were; empty if they would not.
    pub unkept: String,
    /// The number of its tensors.
    pub tensors: u64,
    /// Its name among its user's sessions, if it has one: then it continues without its client.
    pub named: Option<NamedSession>,
    pub waits: Waits,
    /// The last error that its client received; `None` also for those who may not read it.
    pub last_error: Option<LastError>,
    /// The other sessions with work on the workers that it waits for; those that have used the most
    /// device time first.
    pub behind: Vec<String>,
}

record!(struct SessionStatus {
    number, name, origin, slots, entitlement, share, since, instructions, hot_instructions, open, queued, bytes, spilled, busy,
    anticipated, anticipations, windows, recoveries, unkept, tensors, named, waits, last_error, behind,
});

/// An error that a client received: what failed, why, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastError {
    /// When, since the dispatcher started.
    pub at: Duration,
    /// The operation that failed, possibly with its operands.
    pub operation: String,
    pub reason: String,
    /// The worker it failed on; empty if none.
    pub worker: String,
    /// The user's line of that operation; empty if it is not known yet.
    pub line: String,
}

record!(struct LastError { at, operation, reason, worker, line });

impl SessionStatus {
    /// Returns how long devices were kept idle for it each time; `None` if they were not.
    pub fn mean_anticipation(&self) -> Option<Duration> {
        let mean = self.anticipated.as_nanos().checked_div(u128::from(self.anticipations))?;
        Some(Duration::from_nanos(mean as u64))
    }
}

/// A session that continues without its client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedSession {
    pub name: String,
    /// Whether a token is needed to attach to it.
    pub is_private: bool,
    pub is_detached: bool,
    /// When its client attached to it, or left, since the dispatcher started.
    pub since: Duration,
    /// The number of names under which it keeps tensors.
    pub kept: u64,
}

record!(struct NamedSession { name, is_private, is_detached, since, kept });

/// A user, with the totals of the user's sessions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct UserStatus {
    /// The entitlement of each of the sessions.
    pub entitlement: Entitlement,
    pub sessions: u32,
    /// The sessions' share of a worker's time if all sessions have work, between 0 and 1.
    pub share: f64,
    /// The bytes that the sessions hold in the memory of all workers.
    pub bytes: u64,
    /// The spilled bytes.
    pub spilled: u64,
    /// The device time that these sessions and ended ones have used since the dispatcher started.
    pub busy: Duration,
    /// The windows of these sessions and of those that have ended within a window.
    pub windows: [WindowUse; WINDOWS.len()],
}

record!(struct UserStatus { entitlement, sessions, share, bytes, spilled, busy, windows });

/// A team, with the totals of its users.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TeamStatus {
    pub name: String,
    /// The weight of the team among teams.
    pub weight: u32,
    pub sessions: u32,
    pub share: f64,
    pub bytes: u64,
    pub spilled: u64,
    pub busy: Duration,
    pub windows: [WindowUse; WINDOWS.len()],
}

record!(struct TeamStatus { name, weight, sessions, share, bytes, spilled, busy, windows });

/// The number of minutes of the last hour that are kept, of some 50 bytes each.
pub const MINUTES: usize = 60;

/// One of the last [`MINUTES`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MinuteStatus {
    /// When it began, in seconds since the dispatcher started; negative if that was started again
    /// since.
    pub begin: i64,
    /// The device time that sessions used, as workers reported it during the minute.
    pub used: Duration,
    /// The workers and sessions at its end, and the bytes that the sessions held in memory and that
    /// were spilled.
    pub workers: u32,
    pub sessions: u32,
    pub bytes: u64,
    pub spilled: u64,
    /// The moves of slots from one worker to another, and the sessions that were restored.
    pub moves: u32,
    pub recoveries: u32,
    /// The workers that were lost, the sessions that were ended by an error or an operator, and
    /// those that lost tensors.
    pub losses: u32,
}

record!(struct MinuteStatus {
    begin, used, workers, sessions, bytes, spilled, moves, recoveries, losses,
});

/// The windows over which device time is summed, each with its name. They end at the time of the
/// status.
pub const WINDOWS: [(&str, Duration); 3] = [
    ("10s", Duration::from_secs(10)),
    ("1min", Duration::from_secs(60)),
    ("10min", Duration::from_secs(600)),
];

/// The device time of a session, a user or a team in a window, on all workers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WindowUse {
    /// The time that it was entitled to: while it had commands in flight to a worker, its share of
    /// that worker's time beside the others that had, by the policy.
    pub entitled: Duration,
    /// The time that it used, as far as workers have reported it.
    pub used: Duration,
}

record!(struct WindowUse { entitled, used });

impl AddAssign for WindowUse {
    fn add_assign(&mut self, other: WindowUse) {
        self.entitled += other.entitled;
        self.used += other.used;
    }
}

/// A tensor whose value a session waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AwaitedTensor {
    pub id: TensorId,
    /// The operation that computes it; empty if that is not known.
    pub operation: String,
    /// The user's line of that operation, or else the line that reads the value; empty if neither
    /// is known.
    pub line: String,
}

record!(struct AwaitedTensor { id, operation, line });

impl AwaitedTensor {
    /// Returns whether anything but its number is known.
    pub fn is_known(&self) -> bool {
        !(self.operation.is_empty() && self.line.is_empty())
    }
}

impl fmt::Display for AwaitedTensor {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let AwaitedTensor { id, operation, line } = self;
        match (operation.is_empty(), line.is_empty()) {
            (false, false) => write!(f, "{operation} at {line}"),
            (false, true) => write!(f, "{operation}"),
            (true, false) => write!(f, "tensor {id}, read at {line}"),
            (true, true) => write!(f, "tensor {id}"),
        }
    }
}

/// What a session waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Waits {
    /// Nothing: it has no commands in flight.
    Nothing,
    /// A worker: none is connected.
    Workers,
    /// Room in the windows of its lanes, which are full.
    Room,
    /// Its client, which has not yet read the values that were sent to it.
    Reader,
    /// Copies of its tensors: once these exist, the batches that would recompute the tensors are
    /// dropped.
    Copies,
    /// An operator, who has paused it.
    Operator,
    /// Its instructions, which are running.
    Work,
    /// A fetched value.
    Value { tensor: AwaitedTensor, worker: String, since: Duration },
    /// Memory on a worker: within a holder's quota (such as `user ada`), or of the worker (empty).
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
    8 => Operator,
});
