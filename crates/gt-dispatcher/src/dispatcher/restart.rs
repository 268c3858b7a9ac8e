//! Resumes the sessions of a server that was restarted, from its journal: each is restored from its
//! last snapshot once its client and the workers that hold its values have reconnected.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::entitlement::Entitlement;
use gt_ir::message::{Resume, ServerToClient};
use gt_ir::publication::is_publication;
use gt_ir::status::MINUTES;
use gt_ir::status::cluster_event::MoveReason;
use gt_ir::{Incarnation, SessionId, StreamNumbers, WorkerId};

use super::Dispatcher;
use super::cluster_events::minute_records;
use super::recovery::DRAINED_WAIT;
use crate::journal::{
    BaseRecord, History, JournalRecord, SessionHistory, SnapshotState, StoredCopy,
};
use crate::lineage::{Lineage, SessionSnapshot, SlotCopy, SnapshotStage};
use crate::numbers::LastNumbers;
use crate::peer::PeerId;
use crate::planner::Slots;
use crate::sessions::{AwaitedWorkers, ClientSession, Identity, Phase, REJOIN};
use crate::unread::UnreadValues;

/// How long workers keep the snapshots of a server that is gone.
pub const REJOIN_WITHIN: Duration = Duration::from_secs(300);

/// At least as many incarnations, or publications, as the server can have begun before it died that
/// are not in the journal.
const UNKNOWN: u32 = 1000;

impl Dispatcher {
    /// Begins to journal all that a restarted server needs to resume. Returns the records of the
    /// current state.
    pub fn keep_journal(&mut self) -> Vec<JournalRecord> {
        self.journal.is_on = true;
        self.journal.take();
        self.journal_records()
    }

    /// Takes the records made since the last call.
    pub fn take_journal(&mut self) -> Vec<JournalRecord> {
        self.journal.take()
    }

    /// Stops journaling, as the journal cannot be written: sessions continue, but will not survive
    /// the server's death.
    pub fn stop_journal(&mut self, now: Duration) {
        self.journal = Default::default();
        self.publish_unwritten(now);
        self.peers.sessions.peers().into_iter().for_each(|peer| self.end_snapshot(peer));
        self.pump(now);
    }

    /// Sends all clients a notice.
    pub fn notify_all(&mut self, text: &str) {
        for peer in self.peers.sessions.peers() {
            self.outbox.push(peer, ServerToClient::Notice { text: text.into() });
        }
    }

    /// Handles the driver's report that a session's snapshot, or a publication, is in the journal
    /// ([`JournalRecord::awaited`]).
    pub fn snapshot_written(&mut self, now: Duration, session: SessionId, snapshot: u64) {
        if is_publication(session) {
            self.publication_written(now, session);
            return self.pump(now);
        }
        let Some(ClientSession { identity, lineage: Some(lineage), .. }) =
            self.peers.sessions.by_number(session)
        else {
            return;
        };
        let is_it = |pending: &SessionSnapshot| {
            pending.number == snapshot && pending.stage == SnapshotStage::Writing
        };
        if lineage.pending.as_ref().is_some_and(is_it) {
            let peer = identity.peer;
            self.adopt_snapshot(peer);
            self.pump(now);
        }
    }

    /// Returns the record of the last numbers assigned.
    fn numbers(&self) -> JournalRecord {
        let LastNumbers { session, incarnation } = self.peers.sessions.numbers.last();
        JournalRecord::Numbers { session, incarnation, workers: self.peers.workers.next() }
    }

    /// Journals the numbers assigned so far.
    pub(super) fn journal_numbers(&mut self) {
        let numbers = self.numbers();
        self.journal.add(|| numbers);
    }

    /// Returns the records with which a journal that begins now starts.
    pub fn journal_records(&self) -> Vec<JournalRecord> {
        let mut all = vec![self.numbers()];
        all.extend(self.peers.workers.records());
        for session in self.peers.sessions.iter() {
            all.extend(session.records());
        }
        all.extend(self.publication_records());
        all.push(self.orders());
        all.extend(minute_records(self.observability.hour.newest(MINUTES)));
        all
    }

    /// Expects the workers of a journal to reconnect.
    pub fn expect_workers(&mut self, now: Duration, history: &mut History) {
        // Numbers may have been assigned that the journal does not have.
        let LastNumbers { session, incarnation } = history.last;
        if session > SessionId::NONE {
            let session = SessionId(session.0 + UNKNOWN);
            let incarnation = Incarnation(incarnation.0 + UNKNOWN);
            self.peers.sessions.numbers.skip_to(LastNumbers { session, incarnation });
            self.predecessor = Some(self.peers.sessions.numbers.last());
        }
        self.library.adopt(now, std::mem::take(&mut history.publications), UNKNOWN);
        self.observability.hour.adopt(std::mem::take(&mut history.minutes));
        self.rules.weights = std::mem::take(&mut history.weights);
        self.paused = std::mem::take(&mut history.paused);
        let workers = std::mem::take(&mut history.workers);
        self.peers.workers.expect(now, workers, history.workers_next);
    }

    /// Adopts a session of a journal; it waits for its client to reconnect.
    ///
    /// # Errors
    /// The session cannot be resumed.
    pub fn adopt(
        &mut self,
        now: Duration,
        peer: PeerId,
        mut history: SessionHistory,
    ) -> Result<(), String> {
        let limits = self.limits.lineage.ok_or("this server keeps no lineage of sessions")?;
        let unkept = |reason| {
            format!("the server was started again, and its tensors could not be restored: {reason}")
        };
        let batches = history.take_batches().map_err(unkept)?;
        let base = std::mem::replace(&mut history.base, Ok(None))?;
        let mut entitlement = Entitlement { is_away: true, ..self.entitle(&history.hello)? };
        entitlement.weight = history.weight.unwrap_or(entitlement.weight);
        let incarnation = self.peers.sessions.numbers.next_incarnation();
        let mut lineage = Box::new(Lineage::new(limits));
        let (mut state, slots) = (SnapshotState::default(), history.slots);
        let mut numbers = StreamNumbers::default();
        if let Some(base) = base {
            let BaseRecord { snapshot, planned, state: stored, copies, blocks, .. } = *base;
            state = Arc::unwrap_or_clone(stored);
            numbers = state.numbers;
            state.catalogue.set_tensors(history.tensors);
            self.planner.intern_layouts(&mut state.catalogue);
            let copy = |copy: StoredCopy| {
                let StoredCopy { host, keeper, bytes, .. } = copy;
                SlotCopy { host, keeper, bytes, kept: None }
            };
            let copies: BTreeMap<_, _> =
                copies.into_iter().map(|stored| (stored.slot, copy(stored))).collect();
            let number = snapshot;
            let snapshot = SessionSnapshot {
                number,
                state: Arc::new(state.clone()),
                planned,
                copies,
                ..SessionSnapshot::default()
            };
            // Workers may hold later snapshots that the journal does not have: new ones get higher
            // numbers.
            lineage.resume_from(snapshot, u64::from(incarnation.0) << 32);
            // The session has no slots until its workers are back. The base records how many it
            // had.
            state.catalogue.slots = Slots::default();
            for token in blocks {
                self.outbox.release(peer, token);
            }
        }
        for batch in batches {
            numbers.advance(&lineage.log.restore(batch)?);
        }
        lineage.log.rewind();
        if history.is_detached {
            lineage.log.forget_client();
        }
        self.scheduler.admit(peer, &entitlement);
        let numbers_of = (history.number, incarnation);
        let mut identity = Identity::new(now, peer, numbers_of, *history.hello, entitlement);
        identity.rename(history.name);
        let SessionHistory { is_detached, paused, .. } = history;
        let session = self.peers.sessions.add(Identity { is_detached, paused, ..identity });
        (session.queue.received, session.queue.numbers) = (history.received, numbers);
        session.unread = UnreadValues::new(self.limits.unread);
        (session.planning.catalogue, session.planning.templates) =
            (state.catalogue, state.templates);
        (session.planning.kept, session.planning.borrowed) = (state.kept, state.borrowed);
        session.lineage = Some(lineage);
        let workers: BTreeSet<WorkerId> = match slots.count() {
            // It had none yet: it waits for all workers of the journal.
            0 => self.peers.workers.expected().collect(),
            _ => slots.hosts().into_iter().collect(),
        };
        // A session without a client waits for its workers alone.
        let since = is_detached.then_some(now);
        session.phase.enter(Phase::Resuming(AwaitedWorkers::new(since, slots, workers)));
        self.divide_lineage_limit();
        Ok(())
    }

    /// Has a new session wait for workers, if not all announced ones are connected, or if the
    /// server was restarted just before.
    pub(super) fn await_workers(&mut self, now: Duration, peer: PeerId) {
        let since = self.peers.workers.expecting_since();
        let is_soon = since.is_some_and(|since| now < since + REJOIN);
        let expected = self.peers.workers.expected().filter(|_| is_soon);
        let mut workers: BTreeSet<WorkerId> = expected.collect();
        let is_early = !workers.is_empty() || self.peers.workers.lack_announced();
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        if is_early && session.lineage.is_some() {
            let slots = std::mem::take(&mut session.planning.catalogue.slots);
            if let Some(worker) = slots.home_worker() {
                self.peers.workers.release(worker);
            }
            // The connected workers are awaited as well: they may leave before the others connect.
            workers.extend(slots.hosts());
            session.phase.enter(Phase::Starting(AwaitedWorkers::new(Some(now), slots, workers)));
        } else {
            session.phase.enter(Phase::Running);
        }
    }

    /// Handles the return of an adopted session's client, with what it has sent and the answers
    /// that it waits for.
    pub fn client_returned(&mut self, now: Duration, peer: PeerId, resume: &Resume) {
        self.set_away(now, peer, false);
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        if let Some(awaited) = session.phase.awaited_mut() {
            awaited.since = Some(now);
        }
        if session.has_queued() && self.peers.workers.len() == 0 {
            session.queue.workerless_since = Some(now);
        }
        if let Some(lineage) = &mut session.lineage {
            lineage.log.resume(resume.sent, resume.waits.iter().copied().collect());
        }
        // It may emit what the watchers of the server's predecessor wanted.
        self.observability.observe(now, &mut self.outbox, peer);
        self.resume_ready(now);
    }

    /// Resumes the sessions whose awaited peers are all connected.
    pub(super) fn resume_ready(&mut self, now: Duration) {
        let since = self.peers.workers.expecting_since();
        if since.is_some_and(|since| now >= since + REJOIN_WITHIN) {
            let keep_drained = since.is_some_and(|since| now < since + DRAINED_WAIT);
            for id in self.peers.workers.forget_expected(keep_drained) {
                self.journal.add(|| JournalRecord::WorkerLost { id });
            }
        }
        let waits =
            |session: &&ClientSession| session.phase.awaited().is_some_and(|it| it.since.is_some());
        let peers: Vec<PeerId> =
            self.peers.sessions.iter().filter(waits).map(|session| session.identity.peer).collect();
        if !peers.is_empty() {
            peers.into_iter().for_each(|peer| self.resume_session(now, peer));
            self.pump(now);
        }
    }

    fn resume_session(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let (Some(awaited), Some(lineage)) = (session.phase.awaited_mut(), &session.lineage) else {
            return;
        };
        let Some(since) = awaited.since else { return };
        let mut missing = awaited.workers.clone();
        missing.retain(|worker| self.peers.workers.by_id(*worker).is_none());
        let wait = self.limits.worker_wait;
        let is_incomplete = !missing.is_empty() || self.peers.workers.lack_announced();
        let is_early = is_incomplete && now < since + REJOIN.min(wait);
        if is_early || self.peers.workers.len() == 0 {
            return;
        }
        let is_connected = |worker: WorkerId| self.peers.workers.by_id(worker).is_some();
        if let Err(reason) = lineage.base_on(is_connected) {
            let of_base = lineage.base.as_ref().map(SessionSnapshot::workers).unwrap_or_default();
            let gone = of_base.into_iter().filter(|id| !is_connected(*id));
            let names: Vec<String> = gone.map(|id| self.peers.workers.name_of(id)).collect();
            let names = names.join(", ");
            if now >= since + wait {
                let reason = format!(
                    "the server was started again, and the tensors that the workers {names} held could not be restored: {reason}"
                );
                return self.refuse(now, peer, reason);
            }
            if !std::mem::replace(&mut awaited.is_notified, true) {
                let text = format!(
                    "the server was started again: it waits for the workers {names}, which have the session's tensors"
                );
                self.outbox.push(peer, ServerToClient::Notice { text });
            }
            return;
        }
        self.resume_on_slots(now, peer, &missing);
    }

    /// Assigns an adopted session its slots, those of missing workers on others, and restores it.
    fn resume_on_slots(&mut self, now: Duration, peer: PeerId, missing: &BTreeSet<WorkerId>) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let hosts = self.allowed_hosts(&session.identity.entitlement);
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        let before = session.phase.enter(Phase::Running);
        let is_new = matches!(before, Phase::Starting(_));
        let (Phase::Starting(awaited) | Phase::Resuming(awaited)) = before else { return };
        let mut slots = awaited.slots;
        let (arithmetics, placed) = (slots.arithmetics(), slots.placed());
        hosts.iter().for_each(|host| slots.update_arithmetic(*host));
        slots.set_network(self.peers.workers.network());
        for worker in missing {
            slots.remove(*worker, &hosts, |slot| lineage.keeper(slot));
        }
        let before = slots.count();
        for host in &hosts {
            if slots.on(host.worker).is_empty() {
                slots.add(*host, |_| false);
            }
        }
        if slots.home().is_none() {
            let home = self.peers.workers.assign(&hosts);
            slots.set_home(home.and_then(|worker| slots.on(worker).first().copied()));
        } else if let Some(worker) = slots.home_worker() {
            self.peers.workers.count_home(worker);
        }
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        if lineage.log.is_replaying() && before > 0 {
            slots.limit_plans(Some(before));
        }
        session.planning.catalogue.slots = slots;
        session.planning.catalogue.slots.invalidate_plans();
        session.queue.workerless_since = None;
        self.journal.extend(|| session.slots_record());
        let Some(lineage) = &mut session.lineage else { return };
        let count = lineage.log.len();
        if is_new {
            return;
        }
        lineage.recoveries += 1;
        let is_lost =
            |worker: &WorkerId| lineage.base.as_ref().is_ok_and(|it| it.involves(*worker));
        lineage.lacks_second_copy |= missing.iter().any(is_lost);
        self.observability.emit_recovery(now, session, count);
        for worker in self.peers.workers.iter() {
            self.outbox.extend(worker.peer, session.identity.admission());
        }
        let text = format!(
            "the server was started again: the session's tensors are restored, from its last snapshot and {count} batches since"
        );
        self.outbox.push(peer, ServerToClient::Notice { text });
        self.notify_arithmetic_change(peer, &arithmetics);
        self.note_moves(now, peer, &placed, MoveReason::Loss, None);
        self.note_recovery(now, peer, "the server was started again");
        self.restore(now, peer);
    }
}

#[cfg(test)]
mod tests;
