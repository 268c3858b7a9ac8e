//! Sessions that outlive their workers: snapshots are taken as the stream goes on, and a session is
//! made again from the last one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{Failure, Message};
use gt_ir::snapshot::{self, Backup};
use gt_ir::{SlotId, WorkerCommand, WorkerId};

use super::{Dispatcher, PeerId};
use crate::flow::Flow;
use crate::lineage::{Copy, Digest, Lineage, Snapshot, State};
use crate::observability::log::LineKind;
use crate::planner::Plans;
use crate::queue::Queued;
use crate::sessions::Session;
use crate::workers::{WorkerState, Workers};

/// How many batches are taken from the log at a time when they are planned anew.
const AHEAD: usize = 4;

/// What a lost worker costs a session.
pub(super) enum Survival {
    /// Nothing: all is made again.
    Whole,
    /// What it alone had, if it had anything: nothing is kept.
    Unkept,
    /// What it alone had, as it cannot be made again for this reason.
    Lost(String),
}

/// A worker for the copy of another's values: the next one, on another machine if there is one.
fn keeper(
    workers: &Workers,
    host: WorkerId,
    unreachable: &BTreeSet<(WorkerId, WorkerId)>,
) -> Option<WorkerId> {
    let own = workers.by_id(host)?;
    let is_other =
        |worker: &&WorkerState| worker.id != host && !unreachable.contains(&(host, worker.id));
    let others = || workers.iter().filter(is_other);
    let far = |worker: &&WorkerState| worker.machine.is_empty() || worker.machine != own.machine;
    let next = |found: &mut dyn Iterator<Item = WorkerId>| found.min_by_key(|id| (*id < host, *id));
    next(&mut others().filter(far).map(|worker| worker.id))
        .or_else(|| next(&mut others().map(|worker| worker.id)))
}

impl Dispatcher {
    /// Takes snapshots of the sessions of which they are due.
    pub(super) fn take_snapshots(&mut self, now: Duration) {
        let is_due = |session: &&Session| {
            let lineage = session.lineage.as_ref();
            session.has_worker()
                && lineage.is_some_and(|lineage| lineage.is_due(now, session.device))
        };
        let due: Vec<PeerId> =
            self.sessions.iter().filter(is_due).map(|session| session.peer).collect();
        due.into_iter().for_each(|peer| self.take_snapshot(now, peer));
    }

    /// Takes a snapshot of a session if it is due.
    pub(super) fn take_snapshot_if_due(&mut self, now: Duration, peer: PeerId) {
        if let Some(Session { lineage: Some(lineage), device, .. }) = self.sessions.get(peer)
            && lineage.is_due(now, *device)
        {
            self.take_snapshot(now, peer);
        }
    }

    /// A batch of a session is planned, perhaps in part.
    pub(super) fn has_planned(&mut self, now: Duration, peer: PeerId, batch: u64) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        let queued = session.queue.front().map(|next| next.batch);
        lineage.planned(batch, queued, session.catalogue.slots.count());
        self.take_snapshot_if_due(now, peer);
    }

    /// Takes a snapshot of a session at this point of its stream, if it is at the end of a batch.
    fn take_snapshot(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { catalogue, templates, queue, lineage, number, device, .. } = session;
        let Some(lineage) = lineage else { return };
        // If it cannot be taken here, it is tried again after a pause.
        lineage.try_at(now);
        if session.is_expanded || queue.front().is_some_and(|next| lineage.is_begun(next.batch)) {
            return;
        }
        let empty: BTreeSet<SlotId> = catalogue.empty_slots().into_iter().collect();
        let mut copies = BTreeMap::new();
        for slot in catalogue.slots.every().filter(|slot| !empty.contains(slot)) {
            let Some(host) = catalogue.slots.host(slot) else { return };
            let keeper = keeper(&self.workers, host, &lineage.unreachable);
            copies.insert(slot, Copy { host, keeper, bytes: 0, values: Vec::new() });
        }
        let state = State { catalogue: catalogue.clone(), templates: templates.clone() };
        let snapshot = lineage.begin(*device, state);
        let session = *number;
        for (slot, copy) in &copies {
            let keeper = copy.keeper;
            let most = if keeper.is_some() { u64::MAX } else { lineage.most_kept() };
            let command = snapshot::Snapshot { session, number: snapshot, keeper, most };
            self.streams.push(*slot, WorkerCommand::Snapshot(Box::new(command)));
        }
        if let Some(pending) = &mut lineage.pending {
            pending.open = copies.keys().copied().collect();
            pending.copies = copies;
        }
        self.deliver(now, peer, 0);
        self.end_snapshot(peer);
    }

    /// The dispatcher keeps values of a snapshot, as no worker can.
    pub(super) fn keep_backup(&mut self, from: PeerId, backup: Backup) {
        let (owner, number) = (backup.owner, backup.snapshot);
        let Some(worker) = self.workers.get(from).map(|worker| worker.id) else { return };
        let Some(session) = self.sessions.numbered_mut(owner.session) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        if lineage.handing.contains_key(&owner.slot) {
            let host = session.catalogue.slots.host(owner.slot);
            if let Some(host) = host.and_then(|worker| self.workers.by_id(worker)) {
                self.outbox.push(host.peer, Message::Backup(Box::new(backup)));
            }
            return;
        }
        let limit = lineage.most_kept();
        let before = lineage.base.as_ref().ok().and_then(|base| base.copies.get(&owner.slot));
        let known = before.filter(|copy| copy.keeper.is_none()).map(Copy::all).unwrap_or_default();
        let Some(pending) = lineage.pending.as_mut().filter(|it| it.number == number) else {
            return;
        };
        let Some(copy) = pending.copies.get_mut(&owner.slot) else { return };
        if copy.host != worker || copy.keeper.is_some() {
            return;
        }
        let is_last = backup.names.is_some();
        copy.values.push(backup);
        if is_last {
            let result = copy.complete(known, limit);
            self.backed(from, owner.session, owner.slot, number, result);
        }
    }

    /// A worker that others' copies are on, or whose lane has taken a snapshot, says how it went.
    pub(super) fn backed(
        &mut self,
        from: PeerId,
        session: u32,
        slot: SlotId,
        number: u64,
        result: Result<u64, String>,
    ) {
        let session_number = session;
        let Some(session) = self.sessions.numbered_mut(session) else { return };
        let peer = session.peer;
        let Some(lineage) = &mut session.lineage else { return };
        let from = self.workers.get(from).map(|worker| worker.id);
        if lineage.base.as_ref().is_ok_and(|base| base.number == number) {
            match (result, lineage.handing.get(&slot)) {
                (Ok(_), _) => drop(lineage.handing.remove(&slot)),
                // They go by way of the dispatcher.
                (Err(_), Some(holder)) if from == Some(*holder) => {
                    let message = Message::HandOver {
                        session: session_number,
                        slot,
                        snapshot: number,
                        to: None,
                    };
                    if let Some(holder) = self.workers.by_id(*holder) {
                        self.outbox.push(holder.peer, message);
                    }
                }
                (Err(_), _) => {}
            }
            return;
        }
        let Some(pending) = lineage.pending.as_mut().filter(|it| it.number == number) else {
            return;
        };
        if result.as_ref().is_err_and(|reason| reason.contains("cannot be reached"))
            && let Some(copy) = pending.copies.get(&slot)
            && from == Some(copy.host)
            && let Some(keeper) = copy.keeper
        {
            // Another is tried next.
            lineage.unreachable.insert((copy.host, keeper));
        }
        match result {
            Ok(bytes) => {
                pending.open.remove(&slot);
                if let Some(copy) = pending.copies.get_mut(&slot) {
                    copy.bytes = bytes;
                }
                self.end_snapshot(peer);
            }
            Err(reason) => self.abandon_snapshot(peer, &reason),
        }
    }

    /// Completes the snapshot that is being taken of a session, once all of it is kept.
    fn end_snapshot(&mut self, peer: PeerId) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { lineage, number, .. } = session;
        let Some(lineage) = lineage else { return };
        if lineage.pending.as_ref().is_none_or(|pending| !pending.open.is_empty()) {
            return;
        }
        let (blocks, before) = lineage.complete();
        let Ok(base) = &lineage.base else { return };
        let mut holders = base.workers();
        holders.extend(before.iter().flat_map(Snapshot::workers));
        let retain = Message::Retain { session: *number, snapshot: Some(base.number) };
        for worker in holders.into_iter().filter_map(|id| self.workers.by_id(id)) {
            self.outbox.push(worker.peer, retain.clone());
        }
        for token in blocks {
            self.outbox.push(peer, Message::Release { token });
        }
    }

    /// The snapshot that is being taken of a session fails.
    fn abandon_snapshot(&mut self, peer: PeerId, reason: &str) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { lineage, number, .. } = session;
        let Some(lineage) = lineage else { return };
        let Some(pending) = &lineage.pending else { return };
        let mut holders = pending.workers();
        let base = lineage.base.as_ref().ok();
        holders.extend(base.iter().flat_map(|base| base.workers()));
        let snapshot = base.map(|base| base.number);
        let retain = Message::Retain { session: *number, snapshot };
        for worker in holders.into_iter().filter_map(|id| self.workers.by_id(id)) {
            self.outbox.push(worker.peer, retain.clone());
        }
        if lineage.abandon(reason) {
            let text = format!("the session's tensors are lost if a worker is: {reason}");
            self.outbox.push(peer, Message::Notice { text });
        }
    }

    /// A worker is lost: what is kept of a session there is kept elsewhere again, soon.
    pub(super) fn lose_copies(&mut self, peer: PeerId, worker: WorkerId) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        // It may have been the one that could not be reached.
        lineage.left.clear();
        lineage.unreachable.retain(|(from, to)| *from != worker && *to != worker);
        lineage.is_thin |= lineage.base.as_ref().is_ok_and(|base| base.involves(worker));
        if lineage.pending.as_ref().is_some_and(|pending| pending.involves(worker)) {
            self.abandon_snapshot(peer, "a worker was lost");
        }
    }

    /// A worker is lost: makes a session again, if the worker had anything of it.
    pub(super) fn survives(
        &mut self,
        now: Duration,
        peer: PeerId,
        lost: &WorkerState,
        moved: &[SlotId],
        what: &str,
    ) -> Survival {
        self.lose_copies(peer, lost.id);
        let Some(session) = self.sessions.get(peer) else { return Survival::Unkept };
        if session.lineage.is_none() || !self.is_hit(session, moved, lost) {
            return Survival::Unkept;
        }
        let struck = match self.sessions.get_mut(peer).and_then(|it| it.lineage.as_mut()) {
            Some(lineage) => lineage.strike(),
            None => Ok(()),
        };
        let recovered = struck.and_then(|()| self.recover(now, peer, what));
        let Err(reason) = recovered else { return Survival::Whole };
        let Some(session) = self.sessions.get_mut(peer) else { return Survival::Unkept };
        let is_handing = |it: &Lineage| !it.handing.is_empty() || it.is_waiting;
        if session.lineage.as_ref().is_some_and(|lineage| is_handing(lineage)) {
            // Its lanes wait for values that will not come.
            self.refuse(
                now,
                peer,
                format!("{what}, and its tensors could not be made again: {reason}"),
            );
            return Survival::Whole;
        }
        let blocks = session.lineage.as_mut().map(|lineage| lineage.give_up(reason.clone()));
        for token in blocks.unwrap_or_default() {
            self.outbox.push(peer, Message::Release { token });
        }
        let text = format!("{what}, and what it had could not be made again: {reason}");
        self.outbox.push(peer, Message::Notice { text });
        Survival::Lost(reason)
    }

    /// Whether a lost worker had anything of a session that is not elsewhere.
    pub(super) fn is_hit(&self, session: &Session, moved: &[SlotId], lost: &WorkerState) -> bool {
        let empty = session.catalogue.empty_slots();
        let is_used =
            |slot: &SlotId| !empty.contains(slot) || session.flow.under_way(*slot) != (0, 0);
        let lineage = session.lineage.as_ref();
        lineage.is_some_and(|lineage| lineage.handing.values().any(|holder| *holder == lost.id))
            || moved.iter().any(is_used)
            || self.answers.asks(session.peer, lost.peer)
    }

    /// A worker cannot reach another one that has a part of a session: the session leaves it.
    /// Returns whether it can.
    pub(super) fn evade(&mut self, now: Duration, peer: PeerId, worker: WorkerId) -> bool {
        let Some(session) = self.sessions.get(peer) else { return false };
        let Some(lineage) = &session.lineage else { return false };
        let is_there = |worker| self.workers.by_id(worker).is_some();
        let Some(left) = self.workers.by_id(worker) else { return false };
        if lineage.base_on(is_there).is_err() {
            return false;
        }
        let name = left.name.clone();
        let mut hosts = self.allowed_hosts(&session.standing);
        hosts.retain(|host| host.worker != worker && !lineage.left.contains(&host.worker));
        if hosts.is_empty() || lineage.left.contains(&worker) {
            return false;
        }
        let Some(session) = self.sessions.get_mut(peer) else { return false };
        let slots = &mut session.catalogue.slots;
        let was_home = slots.home().filter(|home| slots.host(*home) == Some(worker));
        let Some(lineage) = &mut session.lineage else { return false };
        lineage.left.insert(worker);
        slots.remove(worker, &hosts, |slot| lineage.keeper(slot));
        let what = format!("the worker '{name}' cannot reach another one");
        if self.recover(now, peer, &what).is_err() {
            return false;
        }
        if was_home.is_some() {
            self.workers.release(worker);
        }
        self.settle_home(now, peer, was_home);
        self.pump(now);
        true
    }

    /// Makes a session again from its last snapshot, on the workers that its slots are on now.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(super) fn recover(
        &mut self,
        now: Duration,
        peer: PeerId,
        lost: &str,
    ) -> Result<(), String> {
        self.note_answers();
        let run = self.sessions.next_run();
        let Dispatcher { sessions, workers, .. } = self;
        let Some(session) = sessions.get_mut(peer) else { return Ok(()) };
        let Some(lineage) = &mut session.lineage else { return Err("nothing was kept".into()) };
        let is_there = |worker| workers.by_id(worker).is_some();
        let State { catalogue, templates } = lineage.rewind(is_there)?;
        let old = std::mem::replace(&mut session.run, run);
        let slots = std::mem::replace(&mut session.catalogue, catalogue);
        let (base_slots, slots) = (session.catalogue.slots.count(), slots.slots.clone());
        session.catalogue.slots = slots;
        session.catalogue.slots.renew();
        if lineage.log.is_replayed() {
            session.catalogue.slots.show(Some(base_slots));
        }
        (session.templates, session.plans) = (templates, Plans::default());
        (session.flow, session.is_expanded) = (Flow::default(), false);
        session.queue.clear();
        // They are asked for again.
        for request in lineage.log.unanswered() {
            session.unread.remove(request);
        }
        session.shortages.clear();
        session.forget_bytes();
        let open = session.open;
        session.give_back(&mut self.outbox, open);
        let admission = session.admission();
        let count = lineage_len(session);
        for worker in self.workers.iter_mut() {
            self.outbox.push(worker.peer, Message::EndSession { session: old });
            self.outbox.0.extend(admission.clone().map(|message| (worker.peer, message)));
        }
        self.joints.end_session(old);
        self.answers.forget_client(peer);
        let text = format!(
            "{lost}: the session's tensors are made again, from its last snapshot and {count} batches since"
        );
        if let Some(session) = self.sessions.get(peer) {
            let details = format_args!("run={run} batches={count}");
            let (kind, label) = (LineKind::WorkerRecv, &session.label);
            self.observability.write(now, kind, label, "Recovery", 0, details);
        }
        self.outbox.push(peer, Message::Notice { text });
        match self.sessions.get_mut(peer) {
            Some(session) if !session.has_worker() => {
                session.waiting_since = Some(now);
                if let Some(lineage) = &mut session.lineage {
                    lineage.is_waiting = true;
                }
            }
            _ => self.restore(now, peer),
        }
        Ok(())
    }

    /// Gives a session's slots the values of its base; if they have no worker, once they have.
    pub(super) fn restore(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { catalogue, lineage, number, .. } = session;
        let Some(lineage) = lineage else { return };
        lineage.is_waiting = false;
        lineage.handing.clear();
        let Ok(base) = &lineage.base else { return };
        let (session, snapshot) = (*number, base.number);
        let retain = Message::Retain { session, snapshot: Some(snapshot) };
        for worker in self.workers.iter() {
            self.outbox.push(worker.peer, retain.clone());
        }
        for (slot, copy) in &base.copies {
            let (slot, there) = (*slot, |worker: &WorkerId| self.workers.by_id(*worker).is_some());
            let Some(host) = catalogue.slots.host(slot) else { continue };
            let Some(to) = self.workers.by_id(host).map(|worker| worker.peer) else { continue };
            let holders = [Some(copy.host), copy.keeper].into_iter().flatten().filter(there);
            let holders: Vec<WorkerId> = holders.collect();
            if !holders.contains(&host) {
                match holders.first().and_then(|holder| self.workers.by_id(*holder)) {
                    Some(holder) => {
                        let to = Some(host);
                        let message = Message::HandOver { session, slot, snapshot, to };
                        self.outbox.push(holder.peer, message);
                        lineage.handing.insert(slot, holder.id);
                    }
                    None => copy.values.iter().for_each(|backup| {
                        self.outbox.push(to, Message::Backup(Box::new(backup.clone())));
                    }),
                }
            }
            self.streams.push(slot, WorkerCommand::Restore { session, snapshot });
        }
        self.deliver(now, peer, 0);
    }

    /// Gives the slots of sessions that have waited for a worker the values of their bases.
    pub(super) fn restore_waiting(&mut self, now: Duration) {
        let waits = |session: &&Session| {
            session.has_worker() && session.lineage.as_ref().is_some_and(|it| it.is_waiting)
        };
        let peers: Vec<PeerId> =
            self.sessions.iter().filter(waits).map(|session| session.peer).collect();
        peers.into_iter().for_each(|peer| self.restore(now, peer));
    }

    /// A worker has mapped a client's shared memory. It stays until the values are in a snapshot.
    pub(super) fn release(&mut self, now: Duration, owner: PeerId, token: u128) {
        let lineage = self.sessions.get_mut(owner).and_then(|session| session.lineage.as_mut());
        if !lineage.is_some_and(|lineage| lineage.hold(now, token)) {
            self.outbox.push(owner, Message::Release { token });
        }
    }

    /// Queues batches that are to be planned anew.
    pub(super) fn replay(&mut self, now: Duration) {
        let is_replayed = |session: &&Session| {
            let lineage = session.lineage.as_ref();
            session.queue.len() < AHEAD
                && session.has_worker()
                && lineage.is_some_and(|lineage| lineage.log.is_replayed())
        };
        let peers: Vec<PeerId> =
            self.sessions.iter().filter(is_replayed).map(|session| session.peer).collect();
        for peer in peers {
            let Some(session) = self.sessions.get_mut(peer) else { continue };
            while session.queue.len() < AHEAD {
                let Some(lineage) = &mut session.lineage else { break };
                match lineage.log.replay() {
                    None => break,
                    Some(Ok(batch)) if batch.commands.is_empty() => {
                        session.give_back(&mut self.outbox, batch.weight);
                    }
                    Some(Ok(batch)) => {
                        let mut queued = Queued::new(now, batch.commands, batch.weight);
                        (queued.batch, queued.slots) = (batch.number, batch.slots);
                        session.queue.push_back(queued);
                    }
                    Some(Err(reason)) => {
                        let reason = format!("the session cannot be made again: {reason}");
                        self.refuse(now, peer, reason);
                        break;
                    }
                }
            }
        }
    }

    /// Compares a value that was computed again with what the client has got.
    pub(super) fn compare(&mut self, peer: PeerId, known: Digest, message: &Message) {
        if Digest::of(message) == Some(known) {
            return;
        }
        let reason = match message {
            Message::Value { result: Err(failure), .. } => failure.reason.clone(),
            // An engine that promises less than equal bits may sum in another order.
            _ if self.workers.iter().any(|worker| !worker.is_exact) => {
                let text = "a value that was computed again differs from the one before, as the \
                            engine does not promise equal bits";
                return self.outbox.push(peer, Message::Notice { text: text.into() });
            }
            _ => "a value differs from the one that the program has got".to_string(),
        };
        let failure = Failure::new(
            "fetch",
            format!("the tensors could not be made again after the loss of a worker: {reason}"),
            "",
            gt_ir::SourceId::default(),
        );
        if let Some(session) = self.sessions.get_mut(peer) {
            session.catalogue.fail_all(&Arc::new(failure));
        }
    }

    /// Notes which requests the messages to be sent answer.
    pub(super) fn note_answers(&mut self) {
        for (peer, message) in &self.outbox.0 {
            if let Some(request) = message.answers()
                && let Some(session) = self.sessions.get_mut(*peer)
                && let Some(lineage) = &mut session.lineage
            {
                lineage.log.answered(request, Digest::of(message));
            }
        }
    }
}

/// How many batches are planned anew.
fn lineage_len(session: &Session) -> usize {
    session.lineage.as_ref().map_or(0, |lineage| lineage.log.len())
}
