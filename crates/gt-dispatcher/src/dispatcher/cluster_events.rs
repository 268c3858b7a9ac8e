//! Records what happens to workers and sessions, for people who watch
//! ([`gt_ir::status::cluster_event`]).

use std::collections::BTreeMap;
use std::time::Duration;

use gt_ir::message::Failure;
use gt_ir::status::MinuteStatus;
use gt_ir::status::cluster_event::{ClusterEvent, ClusterEventKind, MoveReason, SessionLabel};
use gt_ir::{SessionId, SlotId, WorkerId};

use super::Dispatcher;
use super::drains::DRAINED;
use crate::journal::JournalRecord;
use crate::observability::HourCounters;
use crate::peer::{PeerId, short};
use crate::peers::Peers;
use crate::sessions::{ClientSession, Identity};
use crate::workers::RegisteredWorker;

/// Why a peer that has said goodbye is disconnected.
pub(super) const SAID_GOODBYE: &str = "said goodbye";

/// Returns the records of minutes, each of which has when it began, in seconds since 1970.
pub(super) fn minute_records<'a>(
    minutes: impl Iterator<Item = (u64, &'a MinuteStatus)>,
) -> impl Iterator<Item = JournalRecord> {
    minutes.map(|(at, minute)| JournalRecord::Minute { at, minute: minute.clone() })
}

impl Identity {
    fn session_label(&self) -> SessionLabel {
        SessionLabel { number: self.number, name: self.label.clone() }
    }
}

impl Dispatcher {
    /// Returns the events after the one of a number that a watcher may read. Reasons quote what failed,
    /// so a user's watcher reads those of that user's sessions alone.
    pub(super) fn events_for(&self, watcher: PeerId, since: u64) -> Vec<ClusterEvent> {
        let mut events = self.observability.cluster_events.after(since);
        let Some(user) = self.observability.watching_user(watcher) else { return events };
        for event in &mut events {
            let Some((session, reason)) = event.kind.quoted() else { continue };
            let session = self.peers.sessions.by_number(session);
            if session.is_none_or(|session| session.identity.entitlement.user != user) {
                reason.clear();
            }
        }
        events
    }

    fn note(&mut self, now: Duration, kind: ClusterEventKind) {
        self.record_minutes(now);
        self.observability.cluster_events.add(now, kind);
    }

    pub(super) fn note_joined(&mut self, now: Duration, worker: &str, is_back: bool) {
        let worker = worker.to_string();
        self.note(now, ClusterEventKind::WorkerJoined { worker, is_back });
    }

    pub(super) fn note_drain(&mut self, now: Duration, worker: &str, within: Duration) {
        let worker = worker.to_string();
        self.note(now, ClusterEventKind::WorkerDrains { worker, within });
    }

    pub(super) fn note_drain_end(&mut self, now: Duration, worker: &str, reason: &str) {
        let (worker, reason) = (worker.to_string(), short(reason));
        self.note(now, ClusterEventKind::DrainEnded { worker, reason });
    }

    /// Records the end of a worker: a loss, unless it has announced it.
    pub(super) fn note_lost(&mut self, now: Duration, lost: &RegisteredWorker, reason: &str) {
        let (worker, reason) = (lost.name.clone(), short(reason));
        self.note(
            now,
            match lost.is_stopped {
                true => ClusterEventKind::WorkerLeft { worker, reason },
                false => ClusterEventKind::WorkerLost { worker, reason },
            },
        );
    }

    /// Records the end of a session, unless its program has closed it.
    pub(super) fn note_session_end(&mut self, now: Duration, of: &Identity, reason: &str) {
        self.observability.cluster_events.forget_recovery(of.number);
        if reason != SAID_GOODBYE {
            let (session, reason) = (of.session_label(), short(reason));
            self.note(now, ClusterEventKind::SessionEnded { session, reason });
        }
    }

    /// Records that a session has lost tensors for good.
    pub(super) fn note_tensors_lost(&mut self, now: Duration, peer: PeerId, reason: &str) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let (session, reason) = (session.identity.session_label(), short(reason));
        self.observability.cluster_events.forget_recovery(session.number);
        self.note(now, ClusterEventKind::TensorsLost { session, reason });
    }

    /// Records an error that is sent to a client.
    pub(super) fn note_error(&mut self, now: Duration, client: PeerId, failure: &Failure) {
        if let Some(session) = self.peers.sessions.get_mut(client) {
            session.note_error(now, failure);
        }
    }

    /// Records that a command of a session is not tried again, as workers died of it.
    pub(super) fn note_given_up(&mut self, now: Duration, peer: PeerId, reason: &str) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let (session, reason) = (session.identity.session_label(), short(reason));
        self.note(now, ClusterEventKind::CommandGivenUp { session, reason });
    }

    /// Records that a session is being restored.
    pub(super) fn note_recovery(&mut self, now: Duration, peer: PeerId, cause: &str) {
        self.record_minutes(now);
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let Some(lineage) = &session.lineage else { return };
        let copies = lineage.base.iter().flat_map(|base| base.copies.values());
        let size = (lineage.log.len(), copies.map(|copy| copy.bytes).sum::<u64>());
        let label = session.identity.session_label();
        self.observability.cluster_events.begin_recovery(now, label, cause, size);
    }

    /// Records which sessions are restored by now. Called often: it does nothing unless a session is
    /// being restored.
    pub(super) fn note_recovered(&mut self, now: Duration) {
        if !self.observability.cluster_events.is_recovering() {
            return;
        }
        let sessions: Vec<SessionId> = self.observability.cluster_events.recovering().collect();
        for number in sessions {
            if self.peers.sessions.by_number(number).is_some_and(ClientSession::is_restored) {
                self.record_minutes(now);
                self.observability.cluster_events.end_recovery(now, number);
            }
        }
    }

    /// Records which slots of a session are on other workers than `before`, one event for each pair
    /// of workers; `gone` is the worker that was lost, if one was.
    pub(super) fn note_moves(
        &mut self,
        now: Duration,
        peer: PeerId,
        before: &[(SlotId, WorkerId)],
        reason: MoveReason,
        gone: Option<&RegisteredWorker>,
    ) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let base = session.lineage.as_ref().and_then(|lineage| lineage.base.as_ref().ok());
        let bytes = |slot| base.and_then(|base| base.copies.get(slot)).map_or(0, |copy| copy.bytes);
        let mut moves: BTreeMap<(WorkerId, WorkerId), (u32, u64)> = BTreeMap::new();
        for (slot, from) in before {
            if let Some(to) = session.slots().host(*slot).filter(|to| to != from) {
                let sum = moves.entry((*from, to)).or_default();
                *sum = (sum.0 + 1, sum.1 + bytes(slot));
            }
        }
        let workers = &self.peers.workers;
        let name = |id: WorkerId| match gone.filter(|gone| gone.id == id) {
            Some(gone) => gone.name.clone(),
            None => workers.known_name(id).map_or_else(|| id.to_string(), str::to_string),
        };
        let events = moves.into_iter().map(|((from, to), (slots, bytes))| {
            let (session, from, to) = (session.identity.session_label(), name(from), name(to));
            ClusterEventKind::SlotsMoved { session, from, to, slots, bytes, reason }
        });
        for event in events.collect::<Vec<_>>() {
            self.note(now, event);
        }
    }

    /// Records the minutes that have ended, for the chart of the last hour. Called whenever something
    /// happens, so that it is counted in its own minute.
    pub(super) fn record_minutes(&mut self, now: Duration) {
        if !self.observability.hour.is_due(now) {
            return;
        }
        let Peers { sessions, workers, .. } = &self.peers;
        let past: u64 = sessions.past().values().sum();
        let device = sessions.iter().map(|session| session.account.device).sum::<u64>() + past;
        let bytes = sessions.iter().map(|session| session.account.bytes());
        let (bytes, spilled) = bytes.fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let present = MinuteStatus {
            workers: workers.len() as u32,
            sessions: sessions.len() as u32,
            bytes,
            spilled,
            ..MinuteStatus::default()
        };
        let events = self.observability.cluster_events.of_hour();
        let counters = HourCounters { device: Duration::from_nanos(device), events };
        let count = self.observability.hour.record(now, counters, &present);
        let hour = &self.observability.hour;
        self.journal.extend(|| minute_records(hour.newest(count)));
    }

    /// Returns why slots leave a worker that ends for a reason.
    pub(super) fn move_reason(reason: &str) -> MoveReason {
        if reason == DRAINED { MoveReason::Drain } else { MoveReason::Loss }
    }
}
