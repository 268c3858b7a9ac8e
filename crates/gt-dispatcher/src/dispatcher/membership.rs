//! Membership: the handshake of clients, workers and watchers, refusals, and lost peers.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::entitlement::Entitlement;
use gt_ir::message::{
    Answer, ClientHello, ClientWelcome, Failure, Goodbye, Hello, ServerToWorker, Welcome,
    WorkerHello, WorkerWelcome,
};
use gt_ir::{Incarnation, LaneId, SessionId, SessionOrigin, SlotId, SourceId};

use super::Dispatcher;
use super::drains::DRAINED;
use super::recovery::Survival;
use crate::journal::JournalRecord;
use crate::lineage::Lineage;
use crate::observability::log::LineKind;
use crate::paused::PausedBy;
use crate::peer::{PeerId, word};
use crate::sessions::Identity;
use crate::unread::UnreadValues;
use crate::workers::RegisteredWorker;

/// Formats ` user=ada team=vision` for a session that joined with a user's key; empty otherwise.
fn of_user(entitlement: &Entitlement) -> String {
    let Entitlement { user, team, .. } = entitlement;
    if user.is_empty() { String::new() } else { format!(" user={user} team={team}") }
}

impl Dispatcher {
    /// Removes a peer whose link is closed. A named session continues without its client.
    pub fn disconnect(&mut self, now: Duration, peer: PeerId, reason: &str) {
        match self.peers.sessions.get(peer) {
            Some(session) if session.identity.name.is_some() => self.detach(now, peer, reason),
            _ => self.remove(now, peer, reason),
        }
        self.forget_waiting(peer);
        self.operators.remove(&peer);
        for (token, owner) in self.answers.unmapped(peer) {
            self.release(now, owner, token);
        }
        let peers = &self.peers;
        self.observability.remove_peer(now, &mut self.outbox, peer, peers);
        self.pump(now);
    }

    /// Removes a worker, or a client with its session.
    fn remove(&mut self, now: Duration, peer: PeerId, reason: &str) {
        if let Some(session) = self.peers.sessions.remove(peer) {
            self.scheduler.retire(peer);
            let Identity { number, entitlement, .. } = &session.identity;
            self.peers.shares.end(now, *number, entitlement);
            self.journal.add(|| JournalRecord::SessionEnd { session: session.identity.number });
            self.note_session_end(now, &session.identity, reason);
            let (used, (held, away)) =
                (Duration::from_nanos(session.account.device), session.account.bytes());
            let details = format_args!(
                "session={}{} device={:.3}s bytes={held} spilled={away} reason={reason}",
                session.identity.number,
                of_user(&session.identity.entitlement),
                used.as_secs_f64()
            );
            let kind = LineKind::Disconnect;
            self.observability.write(now, kind, &session.identity.label, "Link", 0, details);
            let slots = &session.planning.catalogue.slots;
            if let Some(worker) = slots.home_worker() {
                self.peers.workers.release(worker);
            }
            let session_is_kept = session.lineage.is_some();
            for worker in self.peers.workers.iter_mut() {
                let lanes = slots.on(worker.id);
                let open: u64 = lanes.into_iter().map(|slot| session.flow.in_flight(slot).0).sum();
                worker.done(now, open);
                let (number, incarnation) = (session.identity.number, session.identity.incarnation);
                self.outbox.push(worker.peer, ServerToWorker::EndSession { incarnation });
                if session_is_kept {
                    let dropped =
                        ServerToWorker::Retain { session: number, snapshot: None, next: 0 };
                    self.outbox.push(worker.peer, dropped);
                }
            }
            self.collectives.end_session(session.identity.incarnation);
            self.answers.forget_client(peer);
            self.divide_lineage_limit();
            self.session_ended(now, session.identity.number, peer);
            self.admit_waiting(now);
        }
        if let Some(worker) = self.peers.workers.remove(peer) {
            if worker.is_durable && self.limits.lineage.is_some() {
                self.peers.workers.expect_back(now, &worker);
            } else {
                self.journal.add(|| JournalRecord::WorkerLost { id: worker.id });
            }
            self.observability.reports.remove(&worker.id);
            self.peers.shares.lose_worker(now, worker.id);
            self.lose_worker(now, &worker, reason);
        }
    }

    /// Admits a client, worker or watcher by its hello, or refuses it.
    pub(super) fn handshake(&mut self, now: Duration, peer: PeerId, hello: Hello) {
        if self.peers.sessions.get(peer).is_some() || self.peers.workers.get(peer).is_some() {
            return self.refuse(now, peer, "said hello twice".into());
        }
        let revoked = hello.badge().and_then(|badge| self.revoked(&badge.user));
        if let Some(reason) = revoked {
            return self.refuse(now, peer, reason);
        }
        match hello {
            Hello::Client(hello) => self.welcome_client(now, peer, hello),
            Hello::Worker(hello) => self.welcome_worker(now, peer, hello),
            Hello::Operator(hello) => self.welcome_operator(peer, hello),
            Hello::Watcher(hello) => {
                let (peers, user) = (&self.peers, hello.badge.map(|badge| badge.user));
                self.observability.add_watcher(now, &mut self.outbox, peer, user, peers);
                self.outbox.push(peer, Welcome::Watcher);
            }
        }
        self.pump(now);
    }

    fn welcome_client(&mut self, now: Duration, peer: PeerId, mut hello: ClientHello) {
        hello.origin = hello.origin.cleaned();
        if let Some(attach) = &mut hello.attach {
            match SessionOrigin::check(&attach.name) {
                Ok(name) => attach.name = name,
                Err(reason) => return self.refuse(now, peer, reason),
            }
        }
        self.give_session(now, now, peer, hello);
    }

    /// Welcomes a client, whose session began just now, or was attached to.
    pub(super) fn welcome(&mut self, now: Duration, peer: PeerId, is_attached: bool) {
        let (machine, window) = (self.machine.clone(), self.limits.client_window);
        let data_roots = self.data_roots.clone();
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let (name, numbers) = (session.identity.label.clone(), session.queue.numbers);
        let welcome = ClientWelcome {
            window,
            name,
            machine,
            data_roots,
            is_attached,
            numbers,
            ..ClientWelcome::default()
        };
        // A peer reads the welcome before any other message.
        self.outbox.push(peer, Welcome::Client(welcome));
        self.observe_newcomer(now, peer);
    }

    fn welcome_worker(&mut self, now: Duration, peer: PeerId, mut hello: WorkerHello) {
        for text in [&mut hello.name, &mut hello.host, &mut hello.rack] {
            *text = word(text);
        }
        if let Some(earlier) = self.peers.workers.earlier(&hello) {
            self.disconnect(now, earlier, "it was started again");
        }
        let (token, is_renewed) = (hello.token, self.peers.workers.expects(&hello));
        let worker = self.peers.workers.add(peer, hello);
        self.journal.add(|| worker.record());
        let (worker, name) = (worker.id, worker.name.clone());
        let details = format_args!("connected");
        self.observability.write(now, LineKind::WorkerRecv, &name, "Link", 0, details);
        self.note_joined(now, &name, is_renewed);
        let grace = Duration::ZERO;
        let welcome = WorkerWelcome { worker, name, token, grace, is_renewed };
        // A peer reads the welcome before any other message.
        self.outbox.push(peer, Welcome::Worker(welcome));
        self.add_slots(now, worker);
        self.observe_newcomer(now, peer);
        self.outbox.extend(peer, self.policy_kind());
        for session in self.peers.sessions.iter() {
            self.outbox.extend(peer, session.identity.admission());
        }
        if is_renewed || self.predecessor.is_some() {
            // Sessions may have ended while the worker was disconnected: it drops their snapshots.
            let sessions = self.peers.sessions.iter().map(|session| session.identity.number);
            let sessions = sessions.chain(self.library.iter().map(|of| of.id)).collect();
            let last = self.predecessor.unwrap_or_default();
            let since = SessionId(last.session.0 + 1);
            let oldest = Incarnation(last.incarnation.0 + 1);
            self.outbox.push(peer, ServerToWorker::RetainSessions { sessions, since, oldest });
        }
        self.exchange_addresses(peer);
        self.resend_values(now);
        self.copy_publications(now);
        self.restore_waiting(now);
        self.resume_ready(now);
    }

    /// Has a new client or worker emit what a log or watchers want.
    fn observe_newcomer(&mut self, now: Duration, peer: PeerId) {
        if self.observability.is_on() {
            self.observability.observe(now, &mut self.outbox, peer);
        }
    }

    /// Opens a session for a client.
    ///
    /// # Errors
    /// The user has as many sessions as the policy allows.
    pub(super) fn add_client(
        &mut self,
        now: Duration,
        peer: PeerId,
        hello: ClientHello,
    ) -> Result<(), String> {
        let entitlement = self.entitle(&hello)?;
        let hosts = self.allowed_hosts(&entitlement);
        let numbers = (
            self.peers.sessions.numbers.next_session(),
            self.peers.sessions.numbers.next_incarnation(),
        );
        self.scheduler.admit(peer, &entitlement);
        let session =
            self.peers.sessions.add(Identity::new(now, peer, numbers, hello, entitlement));
        session.unread = UnreadValues::new(self.limits.unread);
        let is_paused = self.paused.contains(&session.identity.entitlement.user);
        session.identity.paused = is_paused.then_some(PausedBy::Operator);
        let lineage = self.limits.lineage.map(|limits| Box::new(Lineage::new(limits)));
        session.lineage = lineage;
        let network = self.peers.workers.network().clone();
        let slots = &mut session.planning.catalogue.slots;
        hosts.iter().for_each(|host| slots.add(*host, |_| true));
        slots.set_network(&network);
        if let Some(worker) = self.peers.workers.assign(&hosts) {
            slots.set_home(slots.on(worker).first().copied());
        }
        if let Some(count) =
            self.rules.slots(&session.identity.entitlement.user, &session.identity.entitlement.team)
        {
            slots.rescale(count as usize);
            slots.assign_hosts(&hosts);
        }
        let (label, number) = (&session.identity.label, session.identity.number);
        let (of, entitlement) =
            (of_user(&session.identity.entitlement), &session.identity.entitlement);
        let quotas = entitlement.memory.iter();
        let quotas: String = quotas
            .map(|quota| format!(" quota={}:{}", quota.holder.replace(' ', ":"), quota.bytes))
            .collect();
        let weights = match of.as_str() {
            "" => String::new(),
            _ => format!(" weights={}/{}", entitlement.team_weight, entitlement.user_weight),
        };
        let details = format_args!("session={number}{of}{weights}{quotas}");
        self.observability.write(now, LineKind::Connect, label, "Link", 0, details);
        for worker in self.peers.workers.iter() {
            self.outbox.extend(worker.peer, session.identity.admission());
        }
        self.divide_lineage_limit();
        self.await_workers(now, peer);
        if let Some(session) = self.peers.sessions.get(peer) {
            self.journal.extend(|| session.records());
        }
        Ok(())
    }

    /// Sends a peer a goodbye with the reason, and disconnects it.
    pub(super) fn refuse(&mut self, now: Duration, peer: PeerId, reason: String) {
        let session = self.peers.sessions.get(peer);
        let label =
            session.map_or_else(|| format!("peer{}", peer.number), |s| s.identity.label.clone());
        let details = format_args!("{reason}");
        self.observability.write(now, LineKind::Error, &label, "Refused", 0, details);
        self.outbox.push(peer, Goodbye { reason: reason.clone() });
        self.forget_waiting(peer);
        if self.peers.sessions.get(peer).is_some() || self.peers.workers.get(peer).is_some() {
            self.remove(now, peer, &reason);
            self.disconnect(now, peer, &reason);
        }
    }

    /// Counts a session's home slot on the worker that now hosts it.
    pub(super) fn count_home(&mut self, now: Duration, peer: PeerId, was_home: Option<SlotId>) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let slots = &session.planning.catalogue.slots;
        if let Some(worker) = was_home.and_then(|home| slots.host(home)) {
            self.peers.workers.count_home(worker);
        } else if was_home.is_some() && session.has_queued() {
            session.queue.workerless_since = Some(now);
        }
    }

    /// Moves a lost worker's slots to other workers. Recoverable sessions are restored from their
    /// snapshots; in others, tensors that only this worker held fail.
    fn lose_worker(&mut self, now: Duration, lost: &RegisteredWorker, reason: &str) {
        let details = format_args!("disconnected reason={reason}");
        let kind = LineKind::WorkerRecv;
        self.observability.write(now, kind, &lost.name, "WorkerLost", 0, details);
        self.note_lost(now, lost, reason);
        let failure = Arc::new(Failure::new(
            "fetch",
            format!("the worker '{}' that held the tensor was lost ({reason})", lost.name),
            lost.name.clone(),
            SourceId::default(),
        ));
        let what = match reason {
            DRAINED => format!("the worker '{}' was drained", lost.name),
            _ => format!("the worker '{}' was lost ({reason})", lost.name),
        };
        self.planner.set_rate(self.peers.workers.rate());
        for worker in self.peers.workers.iter() {
            let message = ServerToWorker::WorkerLost { worker: lost.id, name: lost.name.clone() };
            self.outbox.push(worker.peer, message);
        }
        self.lose_values(now, lost.id);
        let network = self.peers.workers.network().clone();
        let tried = self.alone_on(lost.id);
        let mut unrestored = Vec::new();
        for peer in self.peers.sessions.peers() {
            let Some(session) = self.peers.sessions.get(peer) else { continue };
            let hosts = self.allowed_hosts(&session.identity.entitlement);
            let is_alone = self.peers.workers.len() == 0;
            let Some(session) = self.peers.sessions.get_mut(peer) else { continue };
            if session.phase.awaited().is_some() && is_alone && session.has_queued() {
                session.queue.workerless_since.get_or_insert(now);
            }
            let catalogue = &mut session.planning.catalogue;
            let was_home =
                catalogue.slots.home().filter(|home| catalogue.slots.host(*home) == Some(lost.id));
            let lineage = session.lineage.as_ref();
            let keeper = |slot| lineage.and_then(|lineage| lineage.keeper(slot));
            let arithmetics = catalogue.slots.arithmetics();
            let moved = catalogue.slots.remove(lost.id, &hosts, keeper);
            catalogue.slots.set_network(&network);
            if !moved.is_empty() {
                self.journal.extend(|| session.slots_record());
                let from: Vec<_> = moved.iter().map(|slot| (*slot, lost.id)).collect();
                let why = Dispatcher::move_reason(reason);
                self.note_moves(now, peer, &from, why, Some(lost));
            }
            let survival = self.survive_loss(now, peer, lost, &moved, &what, tried == Some(peer));
            self.restore_second_copies(peer);
            self.notify_arithmetic_change(peer, &arithmetics);
            let failure = match survival {
                Survival::Unharmed => {
                    self.count_home(now, peer, was_home);
                    continue;
                }
                Survival::Unprotected => Arc::clone(&failure),
                Survival::Lost(reason) => Arc::new(Failure {
                    reason: format!("{}; it could not be restored: {reason}", failure.reason),
                    ..(*failure).clone()
                }),
            };
            if self.peers.sessions.get(peer).is_some_and(|session| session.has_tensors_in(&moved)) {
                self.note_tensors_lost(now, peer, &failure.reason);
            }
            let Some(session) = self.peers.sessions.get_mut(peer) else { continue };
            unrestored.push(session.identity.number);
            let catalogue = &mut session.planning.catalogue;
            let mut returned = 0;
            let mut messages = Vec::new();
            for slot in &moved {
                self.planner.lose_slot(catalogue, &mut self.streams, *slot, &failure);
                returned += session.flow.lose(*slot);
                let lane = LaneId { incarnation: session.identity.incarnation, slot: *slot };
                messages.extend(self.collectives.lose(lane, catalogue.next().1, &failure));
            }
            moved.iter().for_each(|slot| session.account.lose_slot(*slot));
            session.planning.plans.hosts_changed();
            let number = session.identity.incarnation;
            session.return_credit(&mut self.outbox, returned);
            self.count_home(now, peer, was_home);
            self.send_to_lanes(number, messages);
            self.deliver(now, peer, 0, None);
        }
        for session in unrestored {
            self.end_unstored(now, session, lost.id);
        }
        self.answers.fail_saves(&mut self.outbox, lost.peer, &failure);
        for request in self.answers.forget_worker(&mut self.outbox, lost.peer) {
            if let Some(session) = self.peers.sessions.get_mut(request.client) {
                session.unread.remove(request.original);
                session.note_error(now, &failure);
            }
            let result = Err((*failure).clone());
            let value = Answer::value(request.original, result);
            self.outbox.push(request.client, value);
        }
    }
}
