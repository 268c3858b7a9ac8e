//! The path of a session's batches: queued on receipt, planned in the session's turn, and sent to
//! the workers.

use std::time::Duration;

use bytes::Bytes;
use gt_ir::entitlement::Usage;
use gt_ir::message::{Answer, Reply, ServerToWorker};
use gt_ir::{ClientCommand, LaneId, RequestId};
use smallvec::SmallVec;

use super::trials::isolate_first;
use super::{Dispatcher, OVERDRAFT};
use crate::delivery::Delivery;
use crate::forward::Forward;
use crate::journal::JournalRecord;
use crate::peer::PeerId;
use crate::peers::Peers;
use crate::queue::{self, UnplannedBatch};
use crate::sessions::ClientSession;
use crate::waiting;

/// How many times the usual limit a batch of frees, cancels and requests may exceed.
const LIGHT: u64 = 64;

impl Dispatcher {
    /// Queues a batch of a session. `Status` and `Cancel` take effect at once.
    pub(super) fn receive(
        &mut self,
        now: Duration,
        peer: PeerId,
        mut batch: Vec<ClientCommand>,
        frames: Option<Vec<Bytes>>,
    ) {
        let Some(session) = self.peers.sessions.get_mut(peer) else {
            return self.refuse(now, peer, "the session has ended: connect again".into());
        };
        let weight: u64 = batch.iter().map(ClientCommand::weight).sum();
        let hot = batch.iter().filter(|command| matches!(command, ClientCommand::Invoke(_)));
        session.account.hot_instructions += hot.map(ClientCommand::weight).sum::<u64>();
        session.queue.numbers.advance(&batch);
        let number = session.log(&mut batch, frames, weight);
        session.account.instructions += weight;
        session.flow.awaits_credit = false;
        session.account.note_activity(now);
        if self.observability.is_on() {
            let (label, number) = (&session.identity.label, session.identity.number);
            self.observability.received(now, label, number, &batch);
            self.ask_lines(peer);
        }
        // The status is answered on receipt, not in the session's turn: users need it most when the
        // session is stuck. A request is always the last command of its batch.
        while let Some(ClientCommand::Status { request }) = batch.last() {
            let request = *request;
            self.ask_all_lines();
            let status = Reply::Status(Box::new(self.status(now, peer)));
            self.outbox.push(peer, Answer::new(request, status));
            batch.pop();
        }
        if let Some(ClientCommand::Detach(detach)) =
            batch.pop_if(|last| matches!(last, ClientCommand::Detach(_)))
        {
            self.name_session(peer, *detach);
        }
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        // A client that respects the window exceeds it by at most one batch per thread, and by
        // frees, requests and cancels, which are sent without waiting for credit.
        let limit = OVERDRAFT * self.limits.client_window;
        let is_light = |command: &ClientCommand| {
            command.request().is_some()
                || matches!(command, ClientCommand::Free(_) | ClientCommand::Cancel { .. })
        };
        let limit = if batch.iter().all(is_light) { LIGHT * limit } else { limit };
        if session.flow.open > limit {
            let reason = format!(
                "the session sent more than {limit} commands without waiting for credit for them"
            );
            return self.refuse(now, peer, reason);
        }
        session.flow.open += weight;
        let mut cancelled = Vec::new();
        batch.retain(|command| match command {
            ClientCommand::Cancel { request } => {
                cancelled.push(*request);
                false
            }
            _ => true,
        });
        let replays = session.lineage.as_ref().is_some_and(|lineage| lineage.log.is_replaying());
        if number.is_some() && replays {
            // The batch waits in the log, behind the batches that are being replayed.
            for request in cancelled {
                let returned = self.cancel(peer, request);
                if let Some(session) = self.peers.sessions.get_mut(peer) {
                    session.return_credit(&mut self.outbox, returned);
                }
            }
            self.journal_batch(peer, number);
            if let Some(session) = self.peers.sessions.get_mut(peer)
                && !session.has_worker()
            {
                session.queue.workerless_since.get_or_insert(now);
            }
            return self.pump(now);
        }
        let logged = number;
        let number = number.unwrap_or_default();
        let asks = batch.last().is_some_and(|command| command.request().is_some());
        let mut returned = if batch.is_empty() { weight } else { cancelled.len() as u64 };
        if !batch.is_empty() {
            if session.queue.batches.is_empty() {
                self.scheduler.wake(peer);
            }
            // Each request ends a batch of its own, so that later commands wait while the client
            // does not read its values.
            let is_request = |command: &ClientCommand| command.request().is_some();
            let mut left = weight - returned;
            while let Some(place) = batch[..batch.len() - 1].iter().position(is_request) {
                let rest = batch.split_off(place + 1);
                let own = batch.iter().map(ClientCommand::weight).sum::<u64>().min(left);
                left -= own;
                session.queue.batches.push_back(UnplannedBatch {
                    batch: number,
                    ..UnplannedBatch::new(now, batch, own)
                });
                batch = rest;
            }
            session.queue.batches.push_back(UnplannedBatch {
                batch: number,
                ..UnplannedBatch::new(now, batch, left)
            });
        }
        // Removes the instructions whose results have been freed: a request does not wait for them.
        if session.queue.batches.len() > 1 && asks || !cancelled.is_empty() {
            for request in cancelled {
                returned += self.cancel(peer, request);
            }
            let Some(session) = self.peers.sessions.get_mut(peer) else { return };
            // While plans are recorded for an explanation, unwanted instructions are planned as
            // well.
            if !session.is_explained() {
                let pruning = queue::prune(&mut session.queue.batches, &session.planning.templates);
                returned += pruning.returned;
                for token in pruning.blocks {
                    self.outbox.release(peer, token);
                }
                if let Some(lineage) = &mut session.lineage {
                    for (number, pruned) in pruning.removed {
                        let (session, of_record) = (session.identity.number, pruned.clone());
                        self.journal.add(|| JournalRecord::Pruned {
                            session,
                            number,
                            pruned: of_record,
                        });
                        lineage.log.mark_pruned(number, pruned);
                    }
                }
            }
            session.flow.ignore_window();
        }
        // Journaled after the prunings that its arrival caused, so that they are read in this
        // order.
        self.journal_batch(peer, logged);
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        if !session.has_worker() {
            // A recoverable session loses no tensors: its requests wait for a worker.
            if !session.is_recoverable() {
                session.queue.is_expanded = true;
                match waiting::fail_lost(now, session, &mut self.outbox) {
                    Ok(failed) => returned += failed,
                    Err(reason) => return self.refuse(now, peer, reason),
                }
            }
            if !session.queue.batches.is_empty() {
                session.queue.workerless_since.get_or_insert(now);
            }
        }
        session.return_credit(&mut self.outbox, returned);
        let is_short = !session.account.shortages.is_empty();
        self.pump(now);
        if is_short {
            self.resolve_memory_waits(now);
        }
    }

    /// Adds a batch of the session's log to the journal.
    fn journal_batch(&mut self, peer: PeerId, number: Option<u64>) {
        if let Some(session) = self.peers.sessions.get(peer)
            && let Some(lineage) = &session.lineage
            && let Some((number, frames)) =
                number.and_then(|it| Some((it, lineage.log.frames(it)?)))
        {
            let (session, received) = (session.identity.number, session.queue.received);
            self.journal.add(|| JournalRecord::Batch {
                session,
                number,
                received,
                frames: frames.clone(),
            });
        }
    }

    /// Cancels a request, in the queue or at the worker. Returns the weight that this completes.
    fn cancel(&mut self, peer: PeerId, request: RequestId) -> u64 {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return 0 };
        if let Some(lineage) = &mut session.lineage {
            lineage.log.mark_answered(request, None);
        }
        if let Some(returned) = queue::cancel(&mut session.queue.batches, request) {
            if let Some(lineage) = &mut session.lineage {
                lineage.log.mark_failed(request);
            }
            return returned;
        }
        self.library.cancel(peer, request);
        session.unread.remove(request);
        if let Some((request, open)) = self.answers.cancel(peer, request) {
            let lane = open.lane;
            if let Some(worker) = open.worker {
                self.outbox.push(worker, ServerToWorker::Cancel { lane, request });
            }
        }
        0
    }

    /// Plans queued batches in the scheduler's order while lanes have room.
    pub(super) fn pump(&mut self, now: Duration) {
        self.note_recovered(now);
        self.record_minutes(now);
        let window = self.limits.lane_window;
        let mut ready: SmallVec<[PeerId; 8]> = SmallVec::new();
        loop {
            if self.limits.lineage.is_some() {
                self.replay(now);
                self.choose_trial(now);
            }
            let is_ready =
                |session: &&ClientSession| session.is_ready(window) && self.may_plan(session);
            let sessions = self.peers.sessions.iter().filter(is_ready);
            ready.clear();
            ready.extend(sessions.map(|session| session.identity.peer));
            let Some(peer) = self.scheduler.next(&ready) else { return };
            self.forward(now, peer);
        }
    }

    /// Plans the oldest batch of a session and sends the workers their parts.
    fn forward(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let Some(mut batch) = session.queue.batches.pop_front() else { return };
        if session.queue.batches.is_empty() {
            session.flow.enforce_window();
        }
        let number = batch.batch;
        let suspicion = session.lineage.as_ref().map(|lineage| &lineage.suspicion);
        let given_up = match suspicion.is_some_and(|suspicion| suspicion.is_planned_singly(number))
        {
            false => None,
            true => match isolate_first(session, &mut batch) {
                Ok(given_up) => given_up,
                Err(reason) => return self.refuse(now, peer, reason),
            },
        };
        let (weight, since) = (batch.weight, batch.since);
        // What is computed again after a loss was counted before.
        let is_replayed = session.lineage.as_ref().is_some_and(|of| number < of.rewound_to);
        if !is_replayed {
            self.observability.cluster_events.counters.queue_waits.add(now.saturating_sub(since));
        }
        self.scheduler.charge(peer, weight);
        session.limit_slots(batch.slots);
        session.queue.is_expanded &= !session.queue.batches.is_empty();
        let (parameters, before) = (
            session.planning.catalogue.slots.parameters(),
            session.planning.catalogue.slots.count(),
        );
        let begin = self.observability.takes_events().then(|| self.observability.time(now));
        batch.commands = self.pipeline.process(batch.commands);
        let is_inspected = session.inspected.is_some() && !is_replayed;
        let session = match is_inspected {
            false => session,
            true => {
                self.inspect_batch(now, peer, &batch.commands);
                let Some(session) = self.peers.sessions.get_mut(peer) else { return };
                session
            }
        };
        let forward = Forward {
            now,
            session,
            workers: &self.peers.workers,
            planner: &mut self.planner,
            streams: &mut self.streams,
            answers: &mut self.answers,
            observability: &mut self.observability,
            library: &mut self.library,
            rules: &self.rules,
            outbox: &mut self.outbox,
        };
        let planned = forward.plan(batch, given_up.as_deref());
        if is_inspected {
            self.end_inspecting(now, peer);
        }
        let requests = std::mem::take(&mut self.library.planned);
        match planned.and_then(|()| self.check_count(peer)) {
            Ok(()) => {
                if let (Some(begin), Some(session)) = (begin, self.peers.sessions.get(peer)) {
                    let times = (since, begin);
                    self.observability.emit_batch(now, session, weight, times, &self.peers);
                }
                let has_lineage = self.note_planned(peer, number, before);
                let after = self
                    .peers
                    .sessions
                    .get(peer)
                    .map(|session| session.planning.catalogue.slots.parameters());
                if after.is_some_and(|after| after != parameters) {
                    self.parameters_changed(peer);
                }
                self.deliver(now, peer, weight, Some(number));
                self.after_planning(now, peer, requests);
                if has_lineage {
                    self.take_snapshot_if_due(now, peer);
                }
            }
            Err(reason) => {
                // The batch is dropped, and the session ends.
                self.streams.take();
                self.observability.expansions.clear();
                self.refuse(now, peer, reason);
            }
        }
    }

    /// Checks that a session has at most the allowed number of tensors.
    ///
    /// # Errors
    /// It has more.
    fn check_count(&self, peer: PeerId) -> Result<(), String> {
        let most = self.limits.tensors;
        match self
            .peers
            .sessions
            .get(peer)
            .is_some_and(|session| session.planning.catalogue.tensors().count() > most)
        {
            false => Ok(()),
            true => Err(format!(
                "it has more than {most} tensors at a time, the most that the server allows\n  hint: keep many numbers in one tensor, and delete those that are not needed"
            )),
        }
    }

    /// Sends the planned commands of a session, `of` a client's batch, to its workers.
    pub(super) fn deliver(&mut self, now: Duration, peer: PeerId, weight: u64, of: Option<u64>) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let Dispatcher { peers: Peers { workers, shares, .. }, observability, outbox, .. } = self;
        Delivery { now, session, workers, shares, observability, outbox }.send(
            self.streams.take(),
            weight,
            of,
        );
    }

    /// Handles a lane's report that it has completed commands of this weight.
    pub(super) fn lane_done(
        &mut self,
        now: Duration,
        peer: PeerId,
        lane: LaneId,
        weight: u64,
        usage: Usage,
    ) {
        if !self.is_on(lane, peer) {
            return;
        }
        let Peers { sessions, workers, shares } = &mut self.peers;
        let Some(worker) = workers.get_mut(peer) else { return };
        worker.done(now, weight);
        if let Some(session) = sessions.by_incarnation_mut(lane.incarnation) {
            session.account.note_activity(now);
            session.account.record_usage(lane.slot, usage);
            let (number, returned) =
                (session.identity.number, session.flow.done(lane.slot, weight));
            shares.add_used(now, number, usage.device);
            if !session.is_active_on(worker.id, lane.slot) {
                let of = (number, &session.identity.entitlement);
                shares.set_active(now, worker.id, of, false);
            }
            session.return_credit(&mut self.outbox, returned);
            if session.lineage.is_some() {
                let client = session.identity.peer;
                self.take_snapshot_if_due(now, client);
            }
        }
        self.pump(now);
    }
}
