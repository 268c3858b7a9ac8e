//! Restores sessions after the loss of a worker, from their last snapshots and the batches since.

use std::time::Duration;

use gt_ir::message::{ServerToClient, ServerToWorker};
use gt_ir::snapshot::Owner;
use gt_ir::status::cluster_event::MoveReason;
use gt_ir::{SlotId, WorkerCommand, WorkerId};

use super::Dispatcher;
use crate::journal::SnapshotState;
use crate::lineage::{HandOver, SessionSnapshot, SnapshotStage};
use crate::observability::log::LineKind;
use crate::peer::PeerId;
use crate::peers::Peers;
use crate::planner::PlanCache;
use crate::sessions::{ClientSession, Phase};
use crate::workers::RegisteredWorker;

/// How long sessions wait for a drained worker to be started again with their tensors.
pub const DRAINED_WAIT: Duration = Duration::from_secs(3600);

/// What the loss of a worker costs a session.
pub(super) enum Survival {
    /// Nothing: the session did not use the worker, or is restored.
    Unharmed,
    /// The tensors that only this worker held, if any: the session has no lineage to restore them
    /// from.
    Unprotected,
    /// The tensors that only this worker held: they cannot be restored, for this reason.
    Lost(String),
}

/// Why a session is restored.
#[derive(Clone, Copy)]
pub(super) enum RecoveryCause<'a> {
    /// A worker was lost or cannot be reached: the user is notified.
    Lost(&'a str),
    /// Slots move to other workers: only the log says so.
    Rebalanced(&'a str),
}

impl Dispatcher {
    /// Restores a session after the loss of a worker, if the worker held anything of it.
    pub(super) fn survive_loss(
        &mut self,
        now: Duration,
        peer: PeerId,
        lost: &RegisteredWorker,
        moved: &[SlotId],
        what: &str,
        is_alone: bool,
    ) -> Survival {
        self.lose_copies(peer, lost.id);
        let Some(session) = self.peers.sessions.get(peer) else { return Survival::Unprotected };
        if session.lineage.is_none() || !self.is_hit(session, moved, lost) {
            return Survival::Unprotected;
        }
        let batches = session.flow.batches(moved).filter(|_| !lost.is_stopped);
        let is_restored =
            !lost.is_stopped && moved.iter().any(|slot| session.flow.in_flight(*slot).0 > 0);
        let is_restored = is_restored && batches.is_none();
        if !self.suspect(now, peer, batches, lost, is_alone) {
            return Survival::Unharmed;
        }
        let struck = match self.peers.sessions.get_mut(peer).and_then(|it| it.lineage.as_mut()) {
            Some(lineage) if is_restored => lineage.suspicion.strike(),
            _ => Ok(()),
        };
        let recovered = struck.and_then(|()| self.recover(now, peer, RecoveryCause::Lost(what)));
        let Err(reason) = recovered else { return Survival::Unharmed };
        let Some(session) = self.peers.sessions.get_mut(peer) else { return Survival::Unprotected };
        if session.is_restoring() {
            // Its lanes wait for values that cannot arrive any more.
            self.refuse(
                now,
                peer,
                format!("{what}, and its tensors could not be restored: {reason}"),
            );
            return Survival::Unharmed;
        }
        self.unprotect(peer, &reason);
        let text = format!("{what}, and the tensors that it held could not be restored: {reason}");
        self.outbox.push(peer, ServerToClient::Notice { text });
        Survival::Lost(reason)
    }

    /// Returns whether a lost worker held anything of a session that is not elsewhere.
    pub(super) fn is_hit(
        &self,
        session: &ClientSession,
        moved: &[SlotId],
        lost: &RegisteredWorker,
    ) -> bool {
        let empty = session.planning.catalogue.empty_slots();
        let is_used =
            |slot: &SlotId| !empty.contains(slot) || session.flow.in_flight(*slot) != (0, 0);
        let lineage = session.lineage.as_ref();
        lineage.is_some_and(|lineage| lineage.handovers.values().any(|it| it.holder == lost.id))
            || moved.iter().any(is_used)
            || self.answers.awaits_worker(session.identity.peer, lost.peer)
    }

    /// Moves a session off a worker that cannot reach another one, and restores it. Returns whether
    /// that was possible.
    pub(super) fn leave_worker(&mut self, now: Duration, peer: PeerId, worker: WorkerId) -> bool {
        let Some(session) = self.peers.sessions.get(peer) else { return false };
        let Some(lineage) = &session.lineage else { return false };
        let is_connected = |worker| self.peers.workers.by_id(worker).is_some();
        let Some(worker_left) = self.peers.workers.by_id(worker) else { return false };
        if lineage.base_on(is_connected).is_err() {
            return false;
        }
        let name = worker_left.name.clone();
        let mut hosts = self.hosts_of(session);
        hosts.retain(|host| host.worker != worker);
        if hosts.is_empty() || lineage.abandoned_workers.contains(&worker) {
            return false;
        }
        let Some(session) = self.peers.sessions.get_mut(peer) else { return false };
        let slots = &mut session.planning.catalogue.slots;
        let was_home = slots.home().filter(|home| slots.host(*home) == Some(worker));
        let before = slots.placed();
        let Some(lineage) = &mut session.lineage else { return false };
        lineage.abandoned_workers.insert(worker);
        let arithmetics = slots.arithmetics();
        slots.remove(worker, &hosts, |slot| lineage.keeper(slot));
        self.journal.extend(|| session.slots_record());
        let what = format!("the worker '{name}' cannot reach another one");
        self.note_moves(now, peer, &before, MoveReason::Link, None);
        if self.recover(now, peer, RecoveryCause::Lost(&what)).is_err() {
            return false;
        }
        self.notify_arithmetic_change(peer, &arithmetics);
        if was_home.is_some() {
            self.peers.workers.release(worker);
        }
        self.count_home(now, peer, was_home);
        self.pump(now);
        true
    }

    /// Restores a session from its last snapshot, on the workers that its slots are on now.
    ///
    /// # Errors
    /// Why it cannot be restored.
    pub(super) fn recover(
        &mut self,
        now: Duration,
        peer: PeerId,
        cause: RecoveryCause,
    ) -> Result<(), String> {
        self.log_answers();
        let incarnation = self.peers.sessions.numbers.next_incarnation();
        self.journal_numbers();
        let Peers { sessions, workers, shares } = &mut self.peers;
        let Some(session) = sessions.get_mut(peer) else { return Ok(()) };
        let Some(lineage) = &mut session.lineage else {
            return Err("the session has no lineage".into());
        };
        let is_written =
            lineage.pending.as_ref().is_some_and(|pending| pending.stage == SnapshotStage::Writing);
        let SnapshotState { catalogue, templates, kept, borrowed, .. } =
            lineage.rewind(|worker| workers.may_rejoin(worker))?;
        let old = std::mem::replace(&mut session.identity.incarnation, incarnation);
        let slots = std::mem::replace(&mut session.planning.catalogue, catalogue);
        let (base_slots, slots) = (session.planning.catalogue.slots.count(), slots.slots.clone());
        session.planning.catalogue.slots = slots;
        session.planning.catalogue.slots.invalidate_plans();
        if lineage.log.is_replaying() {
            session.planning.catalogue.slots.limit_plans(Some(base_slots));
        }
        (session.planning.templates, session.planning.plans) = (templates, PlanCache::default());
        (session.planning.kept, session.planning.borrowed) = (kept, borrowed);
        session.flow.restart();
        shares.pause(now, session.identity.number);
        session.queue.is_expanded = false;
        session.queue.batches.clear();
        // They are requested again as the log is replayed.
        for request in lineage.log.unanswered() {
            session.unread.remove(request);
        }
        session.account.forget_bytes();
        let open = session.flow.open;
        session.return_credit(&mut self.outbox, open);
        let admission = session.identity.admission();
        let count = session.lineage.as_ref().map_or(0, |lineage| lineage.log.len());
        for worker in self.peers.workers.iter_mut() {
            self.outbox.push(worker.peer, ServerToWorker::EndSession { incarnation: old });
            self.outbox.extend(worker.peer, admission.clone());
        }
        if let Some(session) = self.peers.sessions.get(peer) {
            let number = session.identity.number;
            self.peers.sessions.numbers.remember(old, number, String::new());
        }
        self.collectives.end_session(old);
        self.answers.forget_client(peer);
        if let Some(session) = self.peers.sessions.get(peer).filter(|_| is_written) {
            // The journal already has the abandoned snapshot as the base.
            self.journal.extend(|| session.records());
        }
        if let Some(session) = self.peers.sessions.get(peer) {
            self.observability.emit_recovery(now, session, count);
        }
        match cause {
            RecoveryCause::Lost(what) => {
                self.note_recovery(now, peer, what);
                let text = format!(
                    "{what}: the session's tensors are restored, from its last snapshot and {count} batches since"
                );
                self.outbox.push(peer, ServerToClient::Notice { text });
            }
            RecoveryCause::Rebalanced(what) => {
                let label =
                    self.peers.sessions.get(peer).map(|session| session.identity.label.clone());
                let (label, kind) = (label.unwrap_or_default(), LineKind::Send);
                self.observability.write(now, kind, &label, "Slots", 0, format_args!("{what}"));
            }
        }
        if let Some(session) = self.peers.sessions.get_mut(peer) {
            session.phase.enter(Phase::Rewound);
            session.queue.workerless_since = Some(now);
        }
        self.restore_waiting(now);
        if self.peers.sessions.get(peer).is_some_and(|session| self.lacks_copies(session)) {
            self.notify_missing(peer);
        }
        Ok(())
    }

    /// Notifies a session's user that it waits for workers that hold its values on disk.
    fn notify_missing(&mut self, peer: PeerId) {
        let names = self.missing_workers(peer).join(", ");
        let text = format!(
            "the session waits for the workers {names} to be started again: they have its tensors in their --state"
        );
        self.outbox.push(peer, ServerToClient::Notice { text });
    }

    /// Returns the names of the disconnected workers that hold values of a session's base.
    fn missing_workers(&self, peer: PeerId) -> Vec<String> {
        let lineage = self.peers.sessions.get(peer).and_then(|session| session.lineage.as_ref());
        let base = lineage.and_then(|lineage| lineage.base.as_ref().ok());
        let all = base.map(SessionSnapshot::workers).unwrap_or_default();
        let gone = all.into_iter().filter(|id| self.peers.workers.by_id(*id).is_none());
        gone.map(|id| self.peers.workers.name_of(id)).collect()
    }

    /// Returns whether a session waits for workers that hold values of its base.
    pub(super) fn lacks_copies(&self, session: &ClientSession) -> bool {
        let is_connected = |worker| self.peers.workers.by_id(worker).is_some();
        let lineage = session.lineage.as_ref();
        session.phase.is_rewound()
            && lineage.is_some_and(|lineage| lineage.base_on(is_connected).is_err())
    }

    /// Returns how long a session waits for a worker: longer for one that was drained, and has its
    /// tensors.
    pub(super) fn worker_wait(&self, session: &ClientSession) -> Duration {
        let limit = self.limits.worker_wait;
        let workers = &self.peers.workers;
        if workers.drained.is_empty() || !session.phase.is_rewound() {
            return limit;
        }
        let is_drained = |id: &WorkerId| workers.drained.contains(id);
        let base = session.lineage.as_ref().and_then(|lineage| lineage.base.as_ref().ok());
        let waits = base.is_some_and(|base| base.workers().iter().any(is_drained));
        if waits { limit.max(DRAINED_WAIT) } else { limit }
    }

    /// Ends the sessions that have waited too long for workers that hold their values.
    pub(super) fn end_unrestored(&mut self, now: Duration) {
        let is_late = |session: &&ClientSession| {
            let limit = self.worker_wait(session);
            self.lacks_copies(session)
                && session.queue.workerless_since.is_some_and(|since| now >= since + limit)
        };
        let late: Vec<PeerId> = self
            .peers
            .sessions
            .iter()
            .filter(is_late)
            .map(|session| session.identity.peer)
            .collect();
        for peer in late {
            let names = self.missing_workers(peer).join(", ");
            let limit = self.peers.sessions.get(peer).map(|session| self.worker_wait(session));
            let limit = limit.unwrap_or_default();
            let reason = format!(
                "its tensors could not be restored: the workers {names}, which have them in their --state, were not started again within {} s",
                limit.as_secs_f64()
            );
            self.refuse(now, peer, reason);
        }
    }

    /// Sends a session's slots the values of its base, from the workers or the dispatcher that hold
    /// them.
    pub(super) fn restore(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let ClientSession { identity, planning, lineage, .. } = session;
        let Some(lineage) = lineage else { return };
        lineage.handovers.clear();
        let Ok(base) = &lineage.base else { return };
        let (session, snapshot) = (identity.number, base.number);
        let retain = lineage.retain(session);
        for worker in self.peers.workers.iter() {
            self.outbox.push(worker.peer, retain.clone());
        }
        for (slot, copy) in &base.copies {
            let (slot, is_connected) =
                (*slot, |worker: &WorkerId| self.peers.workers.by_id(*worker).is_some());
            let Some(host) = planning.catalogue.slots.host(slot) else { continue };
            let Some(to) = self.peers.workers.by_id(host).map(|worker| worker.peer) else {
                continue;
            };
            let holders = [Some(copy.host), copy.keeper].into_iter().flatten().filter(is_connected);
            let holders: Vec<WorkerId> = holders.collect();
            let is_here = holders.contains(&host);
            if !is_here {
                match holders.first().and_then(|holder| self.peers.workers.by_id(*holder)) {
                    Some(holder) => {
                        let to = Some(host);
                        let message = ServerToWorker::HandOver { session, slot, snapshot, to };
                        self.outbox.push(holder.peer, message);
                        let hand_over = HandOver { holder: holder.id, is_indirect: false };
                        lineage.handovers.insert(slot, hand_over);
                    }
                    None => copy.kept.iter().for_each(|kept| {
                        let backup = kept.backup(Owner { session, slot }, snapshot);
                        self.outbox.push(to, ServerToWorker::Backup(Box::new(backup)));
                    }),
                }
            }
            self.streams.push(slot, WorkerCommand::Restore { session, snapshot, is_here });
        }
        self.deliver(now, peer, 0, None);
    }

    /// Restores the sessions that wait for workers, where these have connected.
    pub(super) fn restore_waiting(&mut self, now: Duration) {
        let waits = |session: &&ClientSession| {
            session.has_worker() && session.phase.is_rewound() && !self.lacks_copies(session)
        };
        let peers: Vec<PeerId> =
            self.peers.sessions.iter().filter(waits).map(|session| session.identity.peer).collect();
        for peer in peers {
            if let Some(session) = self.peers.sessions.get_mut(peer) {
                session.phase.enter(Phase::Running);
                session.queue.workerless_since = None;
            }
            self.restore(now, peer);
        }
    }
}
