//! Drains: a worker that is to end hands its slots and values over to other workers first, and the
//! sessions continue there.
//!
//! Slots that hold nothing move at once. Others move after the next snapshot of their session, which
//! continues from it on other workers. Values of snapshots that only the worker holds are copied.
//! Where no other worker may take a session, its snapshot stays in the folder of the worker's state.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_ir::message::{Goodbye, ServerToOperator, ServerToWorker};
use gt_ir::status::cluster_event::MoveReason;
use gt_ir::{LaneId, SlotId, WorkerId};

use super::Dispatcher;
use crate::drain::{Drain, DrainAsker};
use crate::lineage::SnapshotStage;
use crate::observability::log::LineKind;
use crate::peer::PeerId;
use crate::sessions::ClientSession;

/// Why the goodbye to a drained worker, which is no loss.
pub(super) const DRAINED: &str = "drained";

impl Dispatcher {
    /// Begins to drain a worker.
    ///
    /// # Errors
    /// It is being drained already, or a session would lose tensors.
    pub(super) fn drain(
        &mut self,
        now: Duration,
        worker: WorkerId,
        asker: DrainAsker,
        within: Duration,
        force: bool,
    ) -> Result<(), String> {
        let Some(of) = self.peers.workers.by_id_mut(worker) else { return Ok(()) };
        let until = now.saturating_add(within);
        if let Some(drain) = &mut of.drain {
            if asker == DrainAsker::Worker {
                drain.until = drain.until.min(until);
                return Ok(());
            }
            let (since, left) = (now.saturating_sub(drain.since), drain.until.saturating_sub(now));
            return Err(format!(
                "the worker '{}' is being drained since {:.0} s, for {:.0} s more: it waits for {}\n  hint: wait for its end",
                of.name,
                since.as_secs_f64(),
                left.as_secs_f64(),
                drain.waits_for()
            ));
        }
        let details = format_args!("within={}s force={force}", within.as_secs_f64());
        self.observability.write(now, LineKind::Send, &of.name, "Drain", 0, details);
        of.drain = Some(Box::new(Drain {
            since: now,
            until,
            force,
            asker,
            sessions: BTreeMap::new(),
            saved: 0,
            waits: Vec::new(),
        }));
        if let Some(reason) = self.stranded(worker).filter(|_| !force) {
            self.end_drain(worker);
            return Err(reason);
        }
        let name = self.peers.workers.known_name(worker).unwrap_or_default().to_string();
        self.note_drain(now, &name, within);
        self.copy_publications(now);
        self.continue_drains(now);
        self.pump(now);
        Ok(())
    }

    /// Returns why a session would lose tensors by the end of a worker, if one would.
    fn stranded(&self, worker: WorkerId) -> Option<String> {
        let of = self.peers.workers.by_id(worker)?;
        let uses = |session: &&ClientSession| !session.slots().on(worker).is_empty();
        for session in self.peers.sessions.iter().filter(uses) {
            let label = &session.identity.label;
            let is_kept = of.is_durable && session.lineage.is_some();
            if !self.has_others(&self.hosts_of(session)) && !is_kept {
                return Some(format!(
                    "the worker '{}' is the last one that is left for the session {label}, and has no folder for its state: the session's tensors would be lost\n  hint: start another worker first, or start this one with --state FOLDER; or lose them, with --force",
                    of.name
                ));
            }
            if session.lineage.is_none() && self.is_used_on(session, worker) {
                return Some(format!(
                    "the tensors of the session {label} cannot move to another worker: the server keeps no lineage of sessions\n  hint: end that session first, or start the server with --lineage; or lose them, with --force"
                ));
            }
        }
        let is_last = !self.peers.workers.iter().any(|other| other.drain.is_none());
        let leaving = self.leaving_publications(worker);
        let lost = leaving.first().filter(|_| is_last && !of.is_durable)?;
        Some(format!(
            "the worker '{}' is the last one, and has no folder for its state: the publication '{lost}' would be lost\n  hint: start another worker first, or start this one with --state FOLDER; or lose it, with --force",
            of.name
        ))
    }

    /// Returns whether a session has values on a worker, or commands in flight to it.
    fn is_used_on(&self, session: &ClientSession, worker: WorkerId) -> bool {
        let empty = session.planning.catalogue.empty_slots();
        let lineage = session.lineage.as_ref();
        let is_handed = |slot: &SlotId| lineage.is_some_and(|it| it.handovers.contains_key(slot));
        let is_used = |slot: &SlotId| {
            let lane = LaneId { incarnation: session.identity.incarnation, slot: *slot };
            !empty.contains(slot)
                || is_handed(slot)
                || session.flow.in_flight(*slot) != (0, 0)
                || self.collectives.involves_lane(lane)
        };
        session.planning.catalogue.slots.on(worker).iter().any(is_used)
    }

    /// Continues the drains of workers, and ends those that are done or have taken too long.
    pub(super) fn continue_drains(&mut self, now: Duration) {
        let leaving = self.peers.workers.iter().filter(|worker| worker.drain.is_some());
        let leaving: Vec<WorkerId> = leaving.map(|worker| worker.id).collect();
        for worker in leaving {
            self.continue_drain(now, worker);
        }
    }

    fn continue_drain(&mut self, now: Duration, worker: WorkerId) {
        let (mut waits, mut saved) = (Vec::new(), 0);
        for peer in self.peers.sessions.peers() {
            match self.drain_session(now, peer, worker) {
                SessionDrain::Moved => {}
                SessionDrain::Saved => saved += 1,
                SessionDrain::Waits(reason) => {
                    let session = self.peers.sessions.get(peer);
                    let label = session.map_or("", |session| session.identity.label.as_str());
                    waits.push(format!("the session {label}: {reason}"));
                }
            }
        }
        let leaving = self.leaving_publications(worker);
        let is_alone = !self.peers.workers.iter().any(|other| other.drain.is_none());
        let Some(of) = self.peers.workers.by_id_mut(worker) else { return };
        let Some(drain) = &mut of.drain else { return };
        if !is_alone || !of.is_durable {
            let wait = |name| format!("the publication '{name}': its values are copied");
            waits.extend(leaving.into_iter().map(wait));
        }
        (drain.saved, drain.waits) = (saved, waits);
        let is_late = now >= drain.until;
        match (drain.waits.is_empty(), is_late) {
            (true, _) => self.finish_drain(now, worker),
            (false, true) if drain.force => self.finish_drain(now, worker),
            (false, true) => self.give_up_drain(now, worker),
            (false, false) => {}
        }
    }

    /// Moves a session off a worker, as far as that is possible now.
    fn drain_session(&mut self, now: Duration, peer: PeerId, worker: WorkerId) -> SessionDrain {
        let Some(session) = self.peers.sessions.get(peer) else { return SessionDrain::Moved };
        // A session that waits for workers is placed on others when it resumes.
        let is_placed = session.phase.awaited().is_none() && !session.phase.is_rewound();
        if is_placed && !session.planning.catalogue.slots.on(worker).is_empty() {
            let mark = self.mark(peer, worker);
            if let Some(outcome) = self.move_session(now, peer, worker, mark) {
                return outcome;
            }
        }
        self.restore_second_copies(peer);
        self.copies_leave(now, peer, worker)
    }

    /// Returns the number of a session's last snapshot when it was first found on a worker that is
    /// drained.
    fn mark(&mut self, peer: PeerId, worker: WorkerId) -> u64 {
        let Some(session) = self.peers.sessions.get(peer) else { return 0 };
        let last = session.lineage.as_ref().map_or(0, |lineage| lineage.last_snapshot());
        let drain = self.peers.workers.by_id_mut(worker).and_then(|of| of.drain.as_mut());
        let number = session.identity.number;
        drain.map_or(last, |drain| *drain.sessions.entry(number).or_insert(last))
    }

    /// Moves the slots of a session off a worker. Returns what is left to do; `None` if all have
    /// moved.
    fn move_session(
        &mut self,
        now: Duration,
        peer: PeerId,
        worker: WorkerId,
        mark: u64,
    ) -> Option<SessionDrain> {
        let session = self.peers.sessions.get(peer)?;
        let of = self.peers.workers.by_id(worker)?;
        let is_forced = of.drain.as_ref().is_some_and(|drain| drain.force);
        let is_alone = !self.has_others(&self.hosts_of(session));
        if !is_alone && !self.is_used_on(session, worker) {
            self.move_unused(now, peer, worker);
            return None;
        }
        let Some(lineage) = &session.lineage else {
            return (!is_forced)
                .then(|| SessionDrain::Waits("the server keeps no lineage of it".into()));
        };
        if is_alone && !of.is_durable {
            let reason = format!("no other worker may take it, and '{}' has no --state", of.name);
            return (!is_forced).then_some(SessionDrain::Waits(reason));
        }
        if is_alone && lineage.base.as_ref().is_ok_and(|base| base.number > mark) {
            return Some(SessionDrain::Saved);
        }
        if let Some(lineage) = self.peers.sessions.get_mut(peer).and_then(|it| it.lineage.as_mut())
        {
            lineage.request_rebalance();
        }
        self.take_snapshot_if_due(now, peer);
        let session = self.peers.sessions.get(peer)?;
        let is_moved = session.planning.catalogue.slots.on(worker).is_empty();
        (!is_moved).then(|| SessionDrain::Waits(self.delay(session)))
    }

    /// Moves the slots of a session that hold nothing off a worker.
    fn move_unused(&mut self, now: Duration, peer: PeerId, worker: WorkerId) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let hosts = self.hosts_of(session);
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let (slots, lineage) = (&mut session.planning.catalogue.slots, session.lineage.as_ref());
        let was_home = slots.home().filter(|home| slots.host(*home) == Some(worker));
        let (arithmetics, placed) = (slots.arithmetics(), slots.placed());
        slots.remove(worker, &hosts, |slot| lineage.and_then(|lineage| lineage.keeper(slot)));
        session.planning.plans.hosts_changed();
        self.journal.extend(|| session.slots_record());
        if was_home.is_some() {
            self.peers.workers.release(worker);
        }
        self.notify_arithmetic_change(peer, &arithmetics);
        self.note_moves(now, peer, &placed, MoveReason::Drain, None);
        self.count_home(now, peer, was_home);
    }

    /// Returns whether values of a session's base leave with a worker, or are being copied.
    fn copies_leave(&self, now: Duration, peer: PeerId, worker: WorkerId) -> SessionDrain {
        let Some(ClientSession { lineage: Some(lineage), .. }) = self.peers.sessions.get(peer)
        else {
            return SessionDrain::Moved;
        };
        let workers = &self.peers.workers;
        let Some(of) = workers.by_id(worker) else { return SessionDrain::Moved };
        let involves = lineage.base.as_ref().is_ok_and(|base| base.involves(worker));
        if lineage.handovers.values().any(|it| it.holder == worker) {
            return SessionDrain::Waits("its tensors are on the way to another worker".into());
        }
        if !involves {
            return SessionDrain::Moved;
        }
        let is_connected = |id| workers.by_id(id).is_some();
        if lineage.is_leaving(is_connected, |id| workers.stays(id)) {
            let is_alone = !workers.iter().any(|other| other.drain.is_none());
            return match (is_alone, of.is_durable) {
                (true, true) => SessionDrain::Saved,
                (true, false) => SessionDrain::Waits("no other worker has its snapshot".into()),
                (false, _) => SessionDrain::Waits("its snapshot is copied".into()),
            };
        }
        // A second copy elsewhere is worth half of the time.
        let is_early =
            of.drain.as_ref().is_some_and(|it| now < it.since + (it.until - it.since) / 2);
        let is_copied = lineage.copying.values().any(|to| workers.stays(*to));
        if is_copied && is_early {
            return SessionDrain::Waits("its snapshot is copied for the second time".into());
        }
        SessionDrain::Moved
    }

    /// Describes what a session's move waits for.
    fn delay(&self, session: &ClientSession) -> String {
        let Some(lineage) = &session.lineage else { return String::new() };
        if self.trials.is_running() || lineage.suspicion.is_open() {
            return "a worker died, and commands are tried one by one".into();
        }
        if lineage.log.is_replaying() || !lineage.handovers.is_empty() {
            return "it is being restored".into();
        }
        match &lineage.pending {
            Some(pending) if pending.stage == SnapshotStage::Writing => {
                "its snapshot is being written".into()
            }
            Some(pending) if pending.stage == SnapshotStage::Confirming => {
                match session.identity.entitlement.is_away {
                    true => "the connection to its program is lost".into(),
                    false => "its program is to confirm what it has received".into(),
                }
            }
            Some(pending) if pending.open.is_empty() => "its commands are computed".into(),
            Some(_) => "its snapshot is stored, after the commands before it".into(),
            None if !lineage.failure.is_empty() => {
                format!("no snapshot of it can be stored ({})", lineage.failure)
            }
            None => "a part of its program is computed".into(),
        }
    }

    /// Ends a drained worker.
    fn finish_drain(&mut self, now: Duration, worker: WorkerId) {
        let is_needed = self.is_needed_back(worker);
        let Some(drain) = self.end_drain(worker) else { return };
        let Some(of) = self.peers.workers.by_id_mut(worker) else { return };
        let (peer, name) = (of.peer, of.name.clone());
        // Its end is no death, and it is not expected back without need.
        (of.is_stopped, of.is_durable) = (true, of.is_durable && is_needed);
        if of.is_durable {
            self.peers.workers.drained.insert(worker);
        }
        let text = drain.summary(&name, now);
        let details = format_args!("{text}");
        self.observability.write(now, LineKind::WorkerRecv, &name, "Drained", 0, details);
        self.outbox.push(peer, ServerToWorker::DrainEnded { refused: None });
        self.outbox.push(peer, Goodbye { reason: DRAINED.into() });
        self.answer_drain(&drain, Ok(text));
        self.disconnect(now, peer, DRAINED);
    }

    /// Gives up a drain that takes too long: the worker serves on.
    fn give_up_drain(&mut self, now: Duration, worker: WorkerId) {
        let Some(drain) = self.end_drain(worker) else { return };
        let Some(of) = self.peers.workers.by_id(worker) else { return };
        let (peer, name) = (of.peer, of.name.clone());
        let reason = format!(
            "the worker '{}' could not be drained within {:.0} s: it waits for {}\n  hint: it serves on; allow more time with --timeout, or end those sessions",
            of.name,
            (drain.until - drain.since).as_secs_f64(),
            drain.waits_for()
        );
        self.note_drain_end(now, &name, &reason);
        self.outbox.push(peer, ServerToWorker::DrainEnded { refused: Some(reason.clone()) });
        self.answer_drain(&drain, Err(reason));
        self.pump(now);
    }

    /// Ends the drain of a worker, and returns it.
    fn end_drain(&mut self, worker: WorkerId) -> Option<Box<Drain>> {
        self.peers.workers.by_id_mut(worker)?.drain.take()
    }

    fn answer_drain(&mut self, drain: &Drain, result: Result<String, String>) {
        if let DrainAsker::Operator(peer, request) = drain.asker {
            self.outbox.push(peer, ServerToOperator::Done { request, result });
        }
    }

    /// Returns whether a session can be restored only once a worker that ends is back.
    fn is_needed_back(&self, worker: WorkerId) -> bool {
        let others = |id: WorkerId| id != worker && self.peers.workers.by_id(id).is_some();
        let mut lineages =
            self.peers.sessions.iter().filter_map(|session| session.lineage.as_ref());
        let is_in_lineage = lineages.any(|lineage| {
            let base = lineage.base.as_ref();
            base.is_ok_and(|base| base.involves(worker) && base.lost(others).is_some())
        });
        is_in_lineage || !self.leaving_publications(worker).is_empty()
    }

    /// Handles a worker's report that it is to be stopped.
    pub(super) fn worker_leaves(&mut self, now: Duration, peer: PeerId, within: Duration) {
        let Some(worker) = self.peers.workers.get(peer).map(|worker| worker.id) else { return };
        if let Err(reason) = self.drain(now, worker, DrainAsker::Worker, within, false) {
            self.outbox.push(peer, ServerToWorker::DrainEnded { refused: Some(reason) });
        }
    }

    /// Returns when a drain takes too long.
    pub(super) fn next_drain(&self) -> Option<Duration> {
        let drains = self.peers.workers.iter().filter_map(|worker| worker.drain.as_ref());
        drains.map(|drain| drain.until).min()
    }
}

/// What is left of a session on a worker that is drained.
enum SessionDrain {
    /// Nothing.
    Moved,
    /// Its snapshot, in the folder of the worker's state.
    Saved,
    /// Something that this waits for.
    Waits(String),
}
