//! Sessions of a server that was started again. They are made again from their last snapshots once
//! their clients are back, and the workers that have their values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::WorkerId;
use gt_ir::entitlement::Entitlement;
use gt_ir::message::{Message, Resume};

use super::{Dispatcher, PeerId};
use crate::journal::{Base, History, JournalRecord, SessionHistory, StoredCopy};
use crate::lineage::{Copy, Lineage, Snapshot, Stage, State};
use crate::planner::Slots;
use crate::sessions::Session;
use crate::unread::Unread;

/// How long a session waits for all of its workers, if it could do without some.
const REJOIN: Duration = Duration::from_secs(2);
/// How long workers keep the values of a server that is gone.
pub const REJOIN_WITHIN: Duration = Duration::from_secs(300);

/// More numbers than lanes can have got while the disk was waited for.
const UNKNOWN: u32 = 1000;

/// What a session waits for before it begins, or goes on: workers that are to come, and of a server
/// that was started again its client.
pub(crate) struct Awaited {
    since: Duration,
    /// Its slots, on the workers that it had.
    pub slots: Slots,
    /// The workers that it waits for.
    workers: BTreeSet<WorkerId>,
    /// Whether its client is back.
    is_back: bool,
    /// Whether it was told that workers are missing.
    is_told: bool,
    /// Whether it began after the server was started again: then it has no slots before it is placed.
    pub is_new: bool,
}

impl Awaited {
    /// A session waits from now on for these workers; for its client too unless it `is_new`.
    fn new(
        since: Duration,
        slots: Slots,
        workers: BTreeSet<WorkerId>,
        is_new: bool,
    ) -> Box<Awaited> {
        Box::new(Awaited { since, slots, workers, is_back: is_new, is_told: false, is_new })
    }

    /// When it is to be looked at again without anything happening, if workers are waited for so
    /// long.
    pub fn deadline(&self, worker_wait: Duration) -> Option<Duration> {
        let at = if self.is_told { worker_wait } else { REJOIN.min(worker_wait) };
        self.is_back.then_some(self.since + at)
    }
}

impl Dispatcher {
    /// Makes records of everything that a server needs to go on after it was started again. Begins
    /// with what there is.
    pub fn keep_journal(&mut self) -> Vec<JournalRecord> {
        self.journal.is_on = true;
        self.journal.take();
        self.everything()
    }

    /// The records made since they were taken last.
    pub fn take_journal(&mut self) -> Vec<JournalRecord> {
        self.journal.take()
    }

    /// The journal cannot be written: sessions are not kept any more if the server dies, and go on.
    pub fn leave_journal(&mut self, now: Duration) {
        self.journal = Default::default();
        self.sessions.peers().into_iter().for_each(|peer| self.end_snapshot(peer));
        self.pump(now);
    }

    /// Tells all clients something.
    pub fn notify_all(&mut self, text: &str) {
        for peer in self.sessions.peers() {
            self.outbox.push(peer, Message::Notice { text: text.into() });
        }
    }

    /// A session's snapshot is written.
    pub fn written(&mut self, now: Duration, session: u32, snapshot: u64) {
        let Some(Session { peer, lineage: Some(lineage), .. }) =
            self.sessions.numbered_mut(session)
        else {
            return;
        };
        let is_it =
            |pending: &Snapshot| pending.number == snapshot && pending.stage == Stage::Written;
        if lineage.pending.as_ref().is_some_and(is_it) {
            let peer = *peer;
            self.adopt_snapshot(peer);
            self.pump(now);
        }
    }

    /// The last numbers that were given.
    fn numbers(&self) -> JournalRecord {
        let (sessions, workers) = (self.sessions.last(), self.workers.next());
        JournalRecord::Numbers { sessions, workers }
    }

    /// Numbers of lanes were given.
    pub(super) fn journal_numbers(&mut self) {
        let numbers = self.numbers();
        self.journal.add(|| numbers);
    }

    /// The records that a journal of now begins with.
    pub fn everything(&self) -> Vec<JournalRecord> {
        let mut all = vec![self.numbers()];
        all.extend(self.workers.records());
        for session in self.sessions.iter() {
            all.extend(session.records());
        }
        all
    }

    /// The workers of a journal may come back.
    pub fn expect_workers(&mut self, now: Duration, history: &mut History) {
        self.taken_up = Some(now);
        // Lanes may have had numbers that are not in the journal yet.
        if history.sessions_last > 0 {
            self.sessions.skip_to(history.sessions_last + UNKNOWN);
            self.oldest = self.sessions.last() + 1;
        }
        self.workers.expect(std::mem::take(&mut history.workers), history.workers_next);
    }

    /// Takes up a session of a journal; its client has to come back.
    ///
    /// # Errors
    /// It cannot go on.
    pub fn adopt(
        &mut self,
        now: Duration,
        peer: PeerId,
        mut history: SessionHistory,
    ) -> Result<(), String> {
        let limits = self.limits.lineage.ok_or("this server keeps nothing of sessions")?;
        let unkept = |reason| {
            format!(
                "the server was started again, and its tensors could not be made again: {reason}"
            )
        };
        let batches = history.take_batches().map_err(unkept)?;
        let base = std::mem::replace(&mut history.base, Ok(None))?;
        let entitlement = Entitlement { is_away: true, ..self.entitle(&history.hello)? };
        let run = self.sessions.next_number();
        let mut lineage = Box::new(Lineage::new(limits));
        let (mut state, slots) = (State::default(), history.slots);
        if let Some(base) = base {
            let Base { snapshot, planned, state: stored, copies, blocks, .. } = *base;
            state = Arc::unwrap_or_clone(stored);
            state.catalogue.set_tensors(history.tensors);
            self.planner.settle_in(&mut state.catalogue);
            let copy = |copy: StoredCopy| {
                let StoredCopy { host, keeper, bytes, .. } = copy;
                Copy { host, keeper, bytes, kept: None }
            };
            let copies: BTreeMap<_, _> =
                copies.into_iter().map(|stored| (stored.slot, copy(stored))).collect();
            let number = snapshot;
            let snapshot = Snapshot {
                number,
                state: Arc::new(state.clone()),
                planned,
                copies,
                ..Snapshot::default()
            };
            // Workers may have later ones, of which the journal knows nothing.
            lineage.go_on_from(snapshot, u64::from(run) << 32);
            // It has none until its workers are back. The base says how many it had.
            state.catalogue.slots = Slots::default();
            for token in blocks {
                self.outbox.push(peer, Message::Release { token });
            }
        }
        for batch in batches {
            lineage.log.restore(batch)?;
        }
        lineage.log.rewind();
        let numbers = [history.number, run];
        let session = self.sessions.add(now, peer, numbers, *history.hello, entitlement);
        session.received = history.received;
        session.unread = Unread::new(self.limits.unread);
        (session.catalogue, session.templates) = (state.catalogue, state.templates);
        session.lineage = Some(lineage);
        let workers: BTreeSet<WorkerId> = match slots.count() {
            // It had none yet: it begins with all that were there.
            0 => self.workers.expected().collect(),
            _ => slots.hosts().into_iter().collect(),
        };
        session.awaited = Some(Awaited::new(now, slots, workers, false));
        self.divide_lineage();
        Ok(())
    }

    /// A session that begins before all announced workers are there, or just after the server was
    /// started again, waits for them.
    pub(super) fn await_workers(&mut self, now: Duration, peer: PeerId) {
        let is_soon = self.taken_up.is_some_and(|since| now < since + REJOIN);
        let expected = self.workers.expected().filter(|_| is_soon);
        let mut workers: BTreeSet<WorkerId> = expected.collect();
        let is_early = !workers.is_empty() || self.workers.len() < self.announced;
        if let Some(session) = self.sessions.get_mut(peer).filter(|_| is_early)
            && session.lineage.is_some()
        {
            let slots = std::mem::take(&mut session.catalogue.slots);
            if let Some(worker) = slots.home_worker() {
                self.workers.release(worker);
            }
            // Those that are there may leave before the others come.
            workers.extend(slots.hosts());
            session.awaited = Some(Awaited::new(now, slots, workers, true));
        }
    }

    /// The client of a session that was taken up is back, and says what it has sent and waits for.
    pub fn returned(&mut self, now: Duration, peer: PeerId, resume: &Resume) {
        self.set_away(peer, false);
        let Some(session) = self.sessions.get_mut(peer) else { return };
        if let Some(awaited) = &mut session.awaited {
            awaited.is_back = true;
            awaited.since = now;
        }
        if session.has_queued() && self.workers.len() == 0 {
            session.waiting_since = Some(now);
        }
        if let Some(lineage) = &mut session.lineage {
            lineage.log.resume(resume.sent, resume.waits.iter().copied().collect());
        }
        if self.observability.is_on() {
            self.observability.observe(now, &mut self.outbox, peer, true);
        }
        self.revive(now);
    }

    /// Makes sessions again that have all that they wait for.
    pub(super) fn revive(&mut self, now: Duration) {
        if self.taken_up.is_some_and(|since| now >= since + REJOIN_WITHIN) {
            self.taken_up = None;
            for id in self.workers.forget_expected() {
                self.journal.add(|| JournalRecord::WorkerLost { id });
            }
        }
        let waits = |session: &&Session| session.awaited.as_ref().is_some_and(|it| it.is_back);
        let peers: Vec<PeerId> =
            self.sessions.iter().filter(waits).map(|session| session.peer).collect();
        if !peers.is_empty() {
            peers.into_iter().for_each(|peer| self.revive_session(now, peer));
            self.pump(now);
        }
    }

    fn revive_session(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let (Some(awaited), Some(lineage)) = (&mut session.awaited, &session.lineage) else {
            return;
        };
        let mut missing = awaited.workers.clone();
        missing.retain(|worker| self.workers.by_id(*worker).is_none());
        let wait = self.limits.worker_wait;
        let is_incomplete = !missing.is_empty() || self.workers.len() < self.announced;
        let is_early = is_incomplete && now < awaited.since + REJOIN.min(wait);
        if is_early || self.workers.len() == 0 {
            return;
        }
        let there = |worker: WorkerId| self.workers.by_id(worker).is_some();
        if let Err(reason) = lineage.base_on(there) {
            let of_base = lineage.base.as_ref().map(Snapshot::workers).unwrap_or_default();
            let gone = of_base.into_iter().filter(|id| !there(*id));
            let names: Vec<String> = gone.map(|id| self.workers.name_of(id)).collect();
            let names = names.join(", ");
            if now >= awaited.since + wait {
                let reason = format!(
                    "the server was started again, and what the workers {names} had could not be made again: {reason}"
                );
                return self.refuse(now, peer, reason);
            }
            if !std::mem::replace(&mut awaited.is_told, true) {
                let text = format!(
                    "the server was started again: it waits for the workers {names}, which have the session's tensors"
                );
                self.outbox.push(peer, Message::Notice { text });
            }
            return;
        }
        self.place(now, peer, &missing);
    }

    /// Gives a session its slots back, those of missing workers on others, and makes it again.
    fn place(&mut self, now: Duration, peer: PeerId, missing: &BTreeSet<WorkerId>) {
        let Some(session) = self.sessions.get(peer) else { return };
        let hosts = self.allowed_hosts(&session.entitlement);
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Some(awaited) = session.awaited.take() else { return };
        let Some(lineage) = &mut session.lineage else { return };
        let mut slots = awaited.slots;
        let arithmetics = slots.arithmetics();
        hosts.iter().for_each(|host| slots.know(*host));
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
            let home = self.workers.assign(&hosts);
            slots.set_home(home.and_then(|worker| slots.on(worker).first().copied()));
        } else if let Some(worker) = slots.home_worker() {
            self.workers.settle(worker);
        }
        slots.set_fabrics(&Arc::new(self.workers.fabrics()));
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        if lineage.log.is_replayed() && before > 0 {
            slots.show(Some(before));
        }
        session.catalogue.slots = slots;
        session.catalogue.slots.renew();
        session.waiting_since = None;
        self.journal.add_slots(session);
        let Some(lineage) = &mut session.lineage else { return };
        let count = lineage.log.len();
        if awaited.is_new {
            return;
        }
        lineage.recoveries += 1;
        let is_lost =
            |worker: &WorkerId| lineage.base.as_ref().is_ok_and(|it| it.involves(*worker));
        lineage.is_thin |= missing.iter().any(is_lost);
        self.observability.emit_recovery(now, session, count);
        for worker in self.workers.iter() {
            self.outbox.0.extend(session.admission().map(|message| (worker.peer, message)));
        }
        let text = format!(
            "the server was started again: the session's tensors are made again, from its last snapshot and {count} batches since"
        );
        self.outbox.push(peer, Message::Notice { text });
        self.tell_arithmetic(peer, &arithmetics);
        self.restore(now, peer);
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::message::{Hello, Role};

    use super::*;
    use crate::lineage::LineageLimits;
    use crate::planner::Host;
    use crate::{Limits, journal::StoredTensors};

    #[test]
    fn a_base_of_the_journal_knows_its_slots() {
        let mut slots = Slots::default();
        for number in 0..2 {
            slots.add(Host { worker: WorkerId(number), number, arithmetic: 0 }, |_| true);
        }
        let mut state = State::default();
        state.catalogue.slots = slots.clone();
        let base = Base {
            session: 3,
            snapshot: 1,
            received: 0,
            planned: 0,
            state: Arc::new(state),
            tensors: StoredTensors::default(),
            copies: Vec::new(),
            blocks: Vec::new(),
        };
        let mut history = History::default();
        let hello = Box::new(Hello::new(Role::Client, "client"));
        history.add(JournalRecord::Session { session: 3, hello });
        history.add(JournalRecord::Slots { session: 3, from: 0, slots });
        history.add(JournalRecord::Base(Box::new(base)));
        let lineage = Some(LineageLimits::default());
        let limits = Limits { lineage, ..Limits::default() };
        let mut dispatcher = Dispatcher::new(String::new(), limits, None);
        let session = history.take_sessions().remove(0);
        dispatcher.adopt(Duration::ZERO, PeerId(1), session).unwrap();
        let session = dispatcher.sessions.get_mut(PeerId(1)).unwrap();
        assert_eq!(session.catalogue.slots.count(), 0, "its workers are not back");
        let state = session.lineage.as_mut().unwrap().rewind(|_| true).unwrap();
        assert_eq!(state.catalogue.slots.count(), 2);
    }
}
