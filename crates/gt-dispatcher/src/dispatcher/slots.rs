//! Which workers host the slots of sessions: a joining worker gets new slots, or takes over from
//! workers that host several. The number of a session's slots changes only where the session asks
//! for it.

use std::time::Duration;

use gt_ir::message::{ServerToClient, ServerToWorker};
use gt_ir::status::cluster_event::MoveReason;
use gt_ir::{LaneId, SlotId, WorkerId};

use super::Dispatcher;
use super::recovery::RecoveryCause;
use crate::peer::PeerId;
use crate::planner::Host;
use crate::sessions::ClientSession;
use crate::workers::RegisteredWorker;

impl Dispatcher {
    /// Assigns a new worker slots of every session that may be on it.
    pub(super) fn add_slots(&mut self, now: Duration, worker: WorkerId) {
        self.planner.set_rate(self.peers.workers.rate());
        self.peers.workers.end_announcement();
        let Some(host) = self.peers.workers.by_id(worker).map(RegisteredWorker::host) else {
            return;
        };
        for peer in self.peers.sessions.peers() {
            let Some(session) = self.peers.sessions.get(peer) else { continue };
            // A session that awaits its own workers is placed when these are back.
            if self.allowed_hosts(&session.identity.entitlement).contains(&host)
                && session.phase.awaited().is_none()
            {
                self.add_slot(now, peer, host);
            }
            self.restore_second_copies(peer);
        }
    }

    /// Assigns a new worker a slot of a session: one without a worker or on a substitute, or else a
    /// new slot, unless the number of slots is fixed. Otherwise the worker takes over from workers
    /// that host several slots, at the next snapshot.
    fn add_slot(&mut self, now: Duration, peer: PeerId, host: Host) {
        let network = self.peers.workers.network().clone();
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let had_worker = session.has_worker();
        let catalogue = &mut session.planning.catalogue;
        let (hosts_version, parameters) =
            (catalogue.slots.hosts_version(), catalogue.slots.parameters());
        let (before, placed) = (catalogue.slots.arithmetics(), catalogue.slots.placed());
        let empty = catalogue.empty_slots();
        // A slot with commands or collectives in flight stays where it is.
        let (flow, collectives, number) =
            (&session.flow, &self.collectives, session.identity.incarnation);
        let is_idle = |slot| {
            let lane = LaneId { incarnation: number, slot };
            flow.in_flight(slot) == (0, 0) && !collectives.involves_lane(lane)
        };
        catalogue.slots.add(host, |slot| empty.contains(&slot) && is_idle(slot));
        catalogue.slots.set_network(&network);
        if catalogue.slots.hosts_version() != hosts_version {
            session.planning.plans.hosts_changed();
        }
        if !had_worker && catalogue.slots.home().is_none() {
            catalogue.slots.set_home(Some(SlotId(0)));
        }
        if catalogue.slots.parameters().count != parameters.count {
            let count = catalogue.slots.count();
            let text = format!("a worker has joined: the session has {count} slots now");
            self.outbox.push(peer, ServerToClient::Notice { text });
        }
        self.journal.extend(|| session.slots_record());
        if !had_worker {
            if !session.phase.is_rewound() {
                session.queue.workerless_since = None;
            }
            let slots = &session.planning.catalogue.slots;
            if let Some(worker) = slots.home_worker() {
                self.peers.workers.count_home(worker);
            }
        }
        self.notify_arithmetic_change(peer, &before);
        self.note_moves(now, peer, &placed, MoveReason::Balance, None);
        self.use_joined_worker(now, peer, host.worker);
    }

    /// Finds work for a new worker on which a session has no slot yet: it takes over from workers
    /// that host several slots, or else the user is notified, once, that it is spare.
    fn use_joined_worker(&mut self, now: Duration, peer: PeerId, worker: WorkerId) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let hosts = self.hosts_of(session);
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let ClientSession { planning, lineage, account, .. } = session;
        let slots = &planning.catalogue.slots;
        if !slots.on(worker).is_empty() {
            return;
        }
        if !slots.rebalanced(&hosts).is_empty() {
            if let Some(lineage) = lineage {
                lineage.request_rebalance();
                self.take_snapshot_if_due(now, peer);
            }
        } else if slots.is_fixed() && !std::mem::replace(&mut account.spare_reported, true) {
            let (count, all) = (slots.count(), hosts.len());
            let text = format!(
                "the session has {count} slots, and {all} workers are connected: gt.rescale({all}) uses all of them"
            );
            self.outbox.push(peer, ServerToClient::Notice { text });
        }
    }

    /// Notifies a session's user of slots on workers whose arithmetic differs from that of the
    /// workers `before`.
    pub(super) fn notify_arithmetic_change(&mut self, peer: PeerId, before: &[u64]) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let slots = session.slots();
        let is_other = |(slot, old): &(SlotId, &u64)| slots.arithmetic(*slot) != **old;
        let others: Vec<_> = slots.all().zip(before).filter(is_other).collect();
        for (slot, old) in others {
            let Some(host) = slots.host(slot).and_then(|host| self.peers.workers.by_id(host))
            else {
                continue;
            };
            let number = slots.number(slot).unwrap_or(slot.0);
            let [new, old] =
                [slots.arithmetic(slot), *old].map(|number| self.peers.workers.arithmetic(number));
            let text = format!(
                "slot {number} is on the worker '{}' now, which computes with {new}, not {old}: results may differ in their last bits",
                host.name
            );
            self.outbox.push(peer, ServerToClient::Notice { text });
        }
    }

    /// Returns the workers that a session may be on, without those that it has abandoned.
    pub(super) fn hosts_of(&self, session: &ClientSession) -> Vec<Host> {
        let mut hosts = self.allowed_hosts(&session.identity.entitlement);
        if let Some(lineage) = &session.lineage {
            hosts.retain(|host| !lineage.abandoned_workers.contains(&host.worker));
        }
        hosts
    }

    /// Returns whether any of these workers is not to end.
    pub(super) fn has_others(&self, hosts: &[Host]) -> bool {
        hosts.iter().any(|host| self.peers.workers.stays(host.worker))
    }

    /// Moves slots off workers that are to end, and from workers that host several to workers with
    /// fewer: the session resumes there from the snapshot that was just taken.
    pub(super) fn rebalance_slots(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let hosts = self.hosts_of(session);
        let may_leave = self.has_others(&hosts);
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        lineage.rebalance_done();
        let is_connected = |worker| self.peers.workers.by_id(worker).is_some();
        let slots = &mut session.planning.catalogue.slots;
        let mut after = slots.clone();
        if may_leave {
            let leaving = self.peers.workers.iter().filter(|worker| worker.drain.is_some());
            for worker in leaving {
                after.remove(worker.id, &hosts, |slot| lineage.keeper(slot));
            }
        }
        for (slot, host) in after.rebalanced(&hosts) {
            after.move_to(slot, host);
        }
        let moves: Vec<(SlotId, WorkerId)> = after
            .all()
            .filter(|slot| after.host(*slot) != slots.host(*slot))
            .filter_map(|slot| Some((slot, after.host(slot)?)))
            .collect();
        if moves.is_empty() || lineage.base_on(is_connected).is_err() {
            return;
        }
        let (before, arithmetics) = (slots.home_worker(), slots.arithmetics());
        let placed = slots.placed();
        *slots = after;
        let after = slots.home_worker();
        if before != after {
            before.into_iter().for_each(|worker| self.peers.workers.release(worker));
            after.into_iter().for_each(|worker| self.peers.workers.count_home(worker));
        }
        self.journal.extend(|| session.slots_record());
        let number = |slot: SlotId| session.planning.catalogue.slots.number(slot).unwrap_or(slot.0);
        let name = |id: WorkerId| self.peers.workers.name_of(id);
        let moved = moves.iter().map(|(slot, to)| format!("{} to {}", number(*slot), name(*to)));
        let text = format!("slots move: {}", moved.collect::<Vec<_>>().join(", "));
        let stays = |(_, worker): &(SlotId, WorkerId)| self.peers.workers.stays(*worker);
        let (crowded, drained): (Vec<_>, Vec<_>) = placed.into_iter().partition(stays);
        self.note_moves(now, peer, &crowded, MoveReason::Balance, None);
        self.note_moves(now, peer, &drained, MoveReason::Drain, None);
        // Whether the base can be restored was checked above.
        let _ = self.recover(now, peer, RecoveryCause::Rebalanced(&text));
        self.notify_arithmetic_change(peer, &arithmetics);
        self.pump(now);
    }

    /// Handles a change of the planning parameters as a stream is planned: new slots get workers,
    /// and the journal gets the slots.
    pub(super) fn parameters_changed(&mut self, peer: PeerId) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let hosts = self.allowed_hosts(&session.identity.entitlement);
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        session.planning.catalogue.slots.assign_hosts(&hosts);
        session.planning.plans.hosts_changed();
        self.journal.extend(|| session.slots_record());
    }

    /// Has values of a session's base that only one worker holds copied to another one, so that it
    /// may be lost as well.
    pub(super) fn restore_second_copies(&mut self, peer: PeerId) {
        let Some(ClientSession { identity, lineage: Some(lineage), .. }) =
            self.peers.sessions.get_mut(peer)
        else {
            return;
        };
        let workers = &self.peers.workers;
        let is_connected = |worker: WorkerId| workers.by_id(worker).is_some();
        for (slot, holder) in lineage.single_copies(is_connected, |worker| workers.stays(worker)) {
            let to = workers.keeper(holder, &lineage.unreachable);
            let Some(to) = to.filter(|to| workers.stays(*to)) else { continue };
            let Some(snapshot) = lineage.copy_to(slot, to) else { continue };
            let Some(holder) = workers.by_id(holder) else { continue };
            let message =
                ServerToWorker::HandOver { session: identity.number, slot, snapshot, to: Some(to) };
            self.outbox.push(holder.peer, message);
        }
    }
}
