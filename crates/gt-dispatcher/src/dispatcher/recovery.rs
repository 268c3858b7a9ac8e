//! Sessions that outlive their workers: they are made again from their last snapshots.

use std::time::Duration;

use gt_ir::message::Message;
use gt_ir::snapshot::Owner;
use gt_ir::{SlotId, WorkerCommand, WorkerId};

use super::{Dispatcher, PeerId};
use crate::flow::Flow;
use crate::lineage::{HandOver, Snapshot, Stage, State};
use crate::observability::log::LineKind;
use crate::planner::Plans;
use crate::sessions::Session;
use crate::workers::WorkerState;

/// What a lost worker costs a session.
pub(super) enum Survival {
    /// Nothing: all is made again.
    Whole,
    /// What it alone had, if it had anything: nothing is kept.
    Unkept,
    /// What it alone had, as it cannot be made again for this reason.
    Lost(String),
}

/// Why a session is made again.
#[derive(Clone, Copy)]
pub(super) enum Cause<'a> {
    /// Something is lost: its user is told.
    Lost(&'a str),
    /// Slots move to other workers.
    Moved(&'a str),
}

impl Dispatcher {
    /// A worker is lost: makes a session again, if the worker had anything of it.
    pub(super) fn survives(
        &mut self,
        now: Duration,
        peer: PeerId,
        lost: &WorkerState,
        moved: &[SlotId],
        what: &str,
        is_alone: bool,
    ) -> Survival {
        self.lose_copies(peer, lost.id);
        let Some(session) = self.sessions.get(peer) else { return Survival::Unkept };
        if session.lineage.is_none() || !self.is_hit(session, moved, lost) {
            return Survival::Unkept;
        }
        let batches = session.flow.batches(moved).filter(|_| !lost.is_stopped);
        let is_restored =
            !lost.is_stopped && moved.iter().any(|slot| session.flow.under_way(*slot).0 > 0);
        let is_restored = is_restored && batches.is_none();
        if !self.suspect(now, peer, batches, lost, is_alone) {
            return Survival::Whole;
        }
        let struck = match self.sessions.get_mut(peer).and_then(|it| it.lineage.as_mut()) {
            Some(lineage) if is_restored => lineage.suspicion.strike(),
            _ => Ok(()),
        };
        let recovered = struck.and_then(|()| self.recover(now, peer, Cause::Lost(what)));
        let Err(reason) = recovered else { return Survival::Whole };
        let Some(session) = self.sessions.get_mut(peer) else { return Survival::Unkept };
        if session.lineage.as_ref().is_some_and(|lineage| lineage.is_restored()) {
            // Its lanes wait for values that will not come.
            self.refuse(
                now,
                peer,
                format!("{what}, and its tensors could not be made again: {reason}"),
            );
            return Survival::Whole;
        }
        self.unprotect(peer, &reason);
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
        lineage.is_some_and(|lineage| lineage.handing.values().any(|it| it.holder == lost.id))
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
        let mut hosts = self.hosts_of(session);
        hosts.retain(|host| host.worker != worker);
        if hosts.is_empty() || lineage.left.contains(&worker) {
            return false;
        }
        let Some(session) = self.sessions.get_mut(peer) else { return false };
        let slots = &mut session.catalogue.slots;
        let was_home = slots.home().filter(|home| slots.host(*home) == Some(worker));
        let Some(lineage) = &mut session.lineage else { return false };
        lineage.left.insert(worker);
        let arithmetics = slots.arithmetics();
        slots.remove(worker, &hosts, |slot| lineage.keeper(slot));
        self.journal.add_slots(session);
        let what = format!("the worker '{name}' cannot reach another one");
        if self.recover(now, peer, Cause::Lost(&what)).is_err() {
            return false;
        }
        self.tell_arithmetic(peer, &arithmetics);
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
        cause: Cause,
    ) -> Result<(), String> {
        self.note_answers();
        let run = self.sessions.next_number();
        self.journal_numbers();
        let Dispatcher { sessions, workers, .. } = self;
        let Some(session) = sessions.get_mut(peer) else { return Ok(()) };
        let Some(lineage) = &mut session.lineage else { return Err("nothing was kept".into()) };
        let is_written =
            lineage.pending.as_ref().is_some_and(|pending| pending.stage == Stage::Written);
        let State { catalogue, templates } = lineage.rewind(|worker| workers.may_come(worker))?;
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
        let count = session.lineage.as_ref().map_or(0, |lineage| lineage.log.len());
        for worker in self.workers.iter_mut() {
            self.outbox.push(worker.peer, Message::EndSession { session: old });
            self.outbox.0.extend(admission.clone().map(|message| (worker.peer, message)));
        }
        self.joints.end_session(old);
        self.answers.forget_client(peer);
        if let Some(session) = self.sessions.get(peer).filter(|_| is_written) {
            // The journal has the snapshot that was under way as the base.
            self.journal.add_session(session);
        }
        if let Some(session) = self.sessions.get(peer) {
            self.observability.emit_recovery(now, session, count);
        }
        match cause {
            Cause::Lost(what) => {
                let text = format!(
                    "{what}: the session's tensors are made again, from its last snapshot and {count} batches since"
                );
                self.outbox.push(peer, Message::Notice { text });
            }
            Cause::Moved(what) => {
                let label = self.sessions.get(peer).map(|session| session.label.clone());
                let (label, kind) = (label.unwrap_or_default(), LineKind::Send);
                self.observability.write(now, kind, &label, "Slots", 0, format_args!("{what}"));
            }
        }
        if let Some(Session { lineage: Some(lineage), waiting_since, .. }) =
            self.sessions.get_mut(peer)
        {
            (*waiting_since, lineage.is_waiting) = (Some(now), true);
        }
        self.restore_waiting(now);
        if self.sessions.get(peer).is_some_and(|session| self.lacks_copies(session)) {
            self.tell_missing(peer);
        }
        Ok(())
    }

    /// Tells a session's user that it waits for workers that have its values on disk.
    fn tell_missing(&mut self, peer: PeerId) {
        let names = self.missing(peer).join(", ");
        let text = format!(
            "the session waits for the workers {names} to be started again: they have its tensors in their --state"
        );
        self.outbox.push(peer, Message::Notice { text });
    }

    /// The names of the workers that have values of a session's base, and are not there.
    fn missing(&self, peer: PeerId) -> Vec<String> {
        let lineage = self.sessions.get(peer).and_then(|session| session.lineage.as_ref());
        let base = lineage.and_then(|lineage| lineage.base.as_ref().ok());
        let all = base.map(Snapshot::workers).unwrap_or_default();
        let gone = all.into_iter().filter(|id| self.workers.by_id(*id).is_none());
        gone.map(|id| self.workers.name_of(id)).collect()
    }

    /// Whether a session waits for workers that have values of its base.
    pub(super) fn lacks_copies(&self, session: &Session) -> bool {
        let there = |worker| self.workers.by_id(worker).is_some();
        let lineage = session.lineage.as_ref();
        lineage.is_some_and(|lineage| lineage.is_waiting && lineage.base_on(there).is_err())
    }

    /// Ends the sessions that have waited too long for workers that have their values.
    pub(super) fn end_unrestored(&mut self, now: Duration) {
        let limit = self.limits.worker_wait;
        let is_late = |session: &&Session| {
            self.lacks_copies(session)
                && session.waiting_since.is_some_and(|since| now >= since + limit)
        };
        let late: Vec<PeerId> =
            self.sessions.iter().filter(is_late).map(|session| session.peer).collect();
        for peer in late {
            let names = self.missing(peer).join(", ");
            let reason = format!(
                "its tensors could not be made again: the workers {names}, which have them in their --state, were not started again within {} s",
                limit.as_secs_f64()
            );
            self.refuse(now, peer, reason);
        }
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
        let retain = lineage.retain(session);
        for worker in self.workers.iter() {
            self.outbox.push(worker.peer, retain.clone());
        }
        for (slot, copy) in &base.copies {
            let (slot, there) = (*slot, |worker: &WorkerId| self.workers.by_id(*worker).is_some());
            let Some(host) = catalogue.slots.host(slot) else { continue };
            let Some(to) = self.workers.by_id(host).map(|worker| worker.peer) else { continue };
            let holders = [Some(copy.host), copy.keeper].into_iter().flatten().filter(there);
            let holders: Vec<WorkerId> = holders.collect();
            let is_here = holders.contains(&host);
            if !is_here {
                match holders.first().and_then(|holder| self.workers.by_id(*holder)) {
                    Some(holder) => {
                        let to = Some(host);
                        let message = Message::HandOver { session, slot, snapshot, to };
                        self.outbox.push(holder.peer, message);
                        let hand_over = HandOver { holder: holder.id, is_indirect: false };
                        lineage.handing.insert(slot, hand_over);
                    }
                    None => copy.kept.iter().for_each(|kept| {
                        let backup = kept.backup(Owner { session, slot }, snapshot);
                        self.outbox.push(to, Message::Backup(Box::new(backup)));
                    }),
                }
            }
            self.streams.push(slot, WorkerCommand::Restore { session, snapshot, is_here });
        }
        self.deliver(now, peer, 0, None);
    }

    /// Gives the slots of sessions that wait for workers the values of their bases, where these have come.
    pub(super) fn restore_waiting(&mut self, now: Duration) {
        let waits = |session: &&Session| {
            session.has_worker()
                && session.lineage.as_ref().is_some_and(|it| it.is_waiting)
                && !self.lacks_copies(session)
        };
        let peers: Vec<PeerId> =
            self.sessions.iter().filter(waits).map(|session| session.peer).collect();
        for peer in peers {
            if let Some(session) = self.sessions.get_mut(peer) {
                session.waiting_since = None;
            }
            self.restore(now, peer);
        }
    }
}
