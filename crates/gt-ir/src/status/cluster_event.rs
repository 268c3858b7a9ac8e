//! What rarely happens to workers and sessions, for people who watch: losses, recoveries and moves.
//! [`crate::event`] has the events of a timeline, which are many.

use std::time::Duration;

use crate::ids::SessionId;
use crate::record;

/// Something that happened to a worker or a session.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterEvent {
    /// Counts all events of a dispatcher, from 1 on.
    pub number: u64,
    /// The time since the dispatcher started.
    pub at: Duration,
    pub kind: ClusterEventKind,
}

record!(struct ClusterEvent { number, at, kind });

/// What happened. Workers are given by their names.
#[derive(Clone, PartialEq, Debug)]
pub enum ClusterEventKind {
    /// A worker has connected; `is_back` if it was expected, with the snapshots that it has.
    WorkerJoined { worker: String, is_back: bool },
    /// A worker begins to hand over what it has, for this time at most.
    WorkerDrains { worker: String, within: Duration },
    /// The drain of a worker is given up: it continues to serve.
    DrainEnded { worker: String, reason: String },
    /// A worker has ended as it announced, or was drained.
    WorkerLeft { worker: String, reason: String },
    /// A worker died, or its connection is lost.
    WorkerLost { worker: String, reason: String },
    /// A session has ended, but not because its program closed it.
    SessionEnded { session: SessionLabel, reason: String },
    /// A session is being restored from its last snapshot, whose values have these bytes, and from
    /// the batches since.
    RecoveryBegun { session: SessionLabel, cause: String, batches: u64, bytes: u64 },
    /// A session is restored, this long after the first loss.
    Recovered { session: SessionLabel, cause: String, took: Duration },
    /// A session has lost the tensors that a lost worker held.
    TensorsLost { session: SessionLabel, reason: String },
    /// A command of a session is not tried again, as workers died of it.
    CommandGivenUp { session: SessionLabel, reason: String },
    /// Slots of a session have moved from one worker to another, with the bytes of their values in
    /// the session's last snapshot.
    SlotsMoved {
        session: SessionLabel,
        from: String,
        to: String,
        slots: u32,
        bytes: u64,
        reason: MoveReason,
    },
}

impl ClusterEventKind {
    /// Returns the session and the reason if that may quote what its commands computed.
    pub fn quoted(&mut self) -> Option<(SessionId, &mut String)> {
        match self {
            ClusterEventKind::SessionEnded { session, reason }
            | ClusterEventKind::TensorsLost { session, reason }
            | ClusterEventKind::CommandGivenUp { session, reason } => {
                Some((session.number, reason))
            }
            ClusterEventKind::WorkerJoined { .. }
            | ClusterEventKind::WorkerDrains { .. }
            | ClusterEventKind::DrainEnded { .. }
            | ClusterEventKind::WorkerLeft { .. }
            | ClusterEventKind::WorkerLost { .. }
            | ClusterEventKind::RecoveryBegun { .. }
            | ClusterEventKind::Recovered { .. }
            | ClusterEventKind::SlotsMoved { .. } => None,
        }
    }
}

record!(enum ClusterEventKind {
    0 => WorkerJoined { worker, is_back },
    1 => WorkerDrains { worker, within },
    2 => DrainEnded { worker, reason },
    3 => WorkerLeft { worker, reason },
    4 => WorkerLost { worker, reason },
    5 => SessionEnded { session, reason },
    6 => RecoveryBegun { session, cause, batches, bytes },
    7 => Recovered { session, cause, took },
    8 => TensorsLost { session, reason },
    9 => CommandGivenUp { session, reason },
    10 => SlotsMoved { session, from, to, slots, bytes, reason },
});

/// A session, also one that has ended since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionLabel {
    pub number: SessionId,
    /// Its name, such as `train.py ada@box #3`.
    pub name: String,
}

record!(struct SessionLabel { number, name });

/// Why slots of a session move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MoveReason {
    /// Their worker was lost.
    Loss,
    /// Their worker is being drained.
    Drain,
    /// Their worker carries more slots than another one.
    Balance,
    /// Their worker cannot reach another one.
    Link,
}

record!(enum MoveReason { 0 => Loss, 1 => Drain, 2 => Balance, 3 => Link });

impl MoveReason {
    pub const fn name(self) -> &'static str {
        match self {
            MoveReason::Loss => "loss",
            MoveReason::Drain => "drain",
            MoveReason::Balance => "balance",
            MoveReason::Link => "link",
        }
    }
}
