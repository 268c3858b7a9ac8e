//! Which workers carry the slots of sessions: joiners get some, and take over from those that carry
//! several; how many slots a session has changes only where it asks for it.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::Message;
use gt_ir::{LaneId, SlotId, WorkerId};

use super::recovery::Cause;
use super::snapshots::keeper;
use super::{Dispatcher, PeerId};
use crate::planner::Host;
use crate::sessions::Session;
use crate::workers::WorkerState;

impl Dispatcher {
    /// Gives a new worker slots of every session that may be on it.
    pub(super) fn add_slots(&mut self, now: Duration, worker: WorkerId) {
        self.planner.set_rate(self.workers.rate());
        if self.workers.len() >= self.announced {
            self.announced = 0;
        }
        let Some(host) = self.workers.by_id(worker).map(WorkerState::host) else { return };
        for peer in self.sessions.peers() {
            let Some(session) = self.sessions.get(peer) else { continue };
            // One that waits for its own workers waits for these first.
            if self.allowed_hosts(&session.entitlement).contains(&host) && session.awaited.is_none()
            {
                self.add_slot(now, peer, host);
            }
            self.repair(peer);
        }
    }

    /// Gives a new worker a slot of a session: one that is on no worker, or stands on another one for
    /// the time being; or a new one, as long as their number is not fixed. Otherwise it takes over
    /// from workers that carry several, at the next snapshot.
    fn add_slot(&mut self, now: Duration, peer: PeerId, host: Host) {
        let fabrics = Arc::new(self.workers.fabrics());
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let had_worker = session.has_worker();
        let catalogue = &mut session.catalogue;
        let (moves, terms) = (catalogue.slots.moves(), catalogue.slots.terms());
        let before = catalogue.slots.arithmetics();
        let empty = catalogue.empty_slots();
        // A slot with commands or joint exchanges in flight stays where it is.
        let (flow, joints, number) = (&session.flow, &self.joints, session.run);
        let is_idle = |slot| {
            let lane = LaneId { session: number, slot };
            flow.under_way(slot) == (0, 0) && !joints.involve(lane)
        };
        catalogue.slots.add(host, |slot| empty.contains(&slot) && is_idle(slot));
        catalogue.slots.set_fabrics(&fabrics);
        if catalogue.slots.moves() != moves {
            session.plans.slots_moved();
        }
        if !had_worker && catalogue.slots.home().is_none() {
            catalogue.slots.set_home(Some(SlotId(0)));
        }
        if catalogue.slots.terms().count != terms.count {
            let count = catalogue.slots.count();
            let text = format!("a worker has joined: the session is cut over {count} slots now");
            self.outbox.push(peer, Message::Notice { text });
        }
        self.journal.add_slots(session);
        if !had_worker {
            if !session.lineage.as_ref().is_some_and(|lineage| lineage.is_waiting) {
                session.waiting_since = None;
            }
            let slots = &session.catalogue.slots;
            if let Some(worker) = slots.home_worker() {
                self.workers.settle(worker);
            }
        }
        self.tell_arithmetic(peer, &before);
        self.find_use(now, peer, host.worker);
    }

    /// A worker has joined of which a session may have no use yet: it takes over from workers that
    /// carry several slots, or else the user is told, once, that it is spare.
    fn find_use(&mut self, now: Duration, peer: PeerId, worker: WorkerId) {
        let Some(session) = self.sessions.get(peer) else { return };
        let hosts = self.hosts_of(session);
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { catalogue, lineage, knows_spare, .. } = session;
        let slots = &catalogue.slots;
        if !slots.on(worker).is_empty() {
            return;
        }
        if !slots.evened(&hosts).is_empty() {
            if let Some(lineage) = lineage {
                lineage.crowd();
                self.take_snapshot_if_due(now, peer);
            }
        } else if slots.is_fixed() && !std::mem::replace(knows_spare, true) {
            let (count, all) = (slots.count(), hosts.len());
            let text = format!(
                "the session is cut over {count} slots, and {all} workers are there: gt.rescale({all}) uses all"
            );
            self.outbox.push(peer, Message::Notice { text });
        }
    }

    /// Tells a session's user if slots are on workers that compute otherwise than those `before`.
    pub(super) fn tell_arithmetic(&mut self, peer: PeerId, before: &[u64]) {
        let Some(session) = self.sessions.get(peer) else { return };
        let slots = session.slots();
        let is_other = |(slot, old): &(SlotId, &u64)| slots.arithmetic(*slot) != **old;
        let others: Vec<_> = slots.every().zip(before).filter(is_other).collect();
        for (slot, old) in others {
            let Some(host) = slots.host(slot).and_then(|host| self.workers.by_id(host)) else {
                continue;
            };
            let number = slots.number(slot).unwrap_or(slot.0);
            let [new, old] =
                [slots.arithmetic(slot), *old].map(|number| self.workers.arithmetic(number));
            let text = format!(
                "slot {number} is on the worker '{}' now, which computes with {new}, not {old}: results may differ in their last bits",
                host.name
            );
            self.outbox.push(peer, Message::Notice { text });
        }
    }

    /// The workers that a session may be on, without those that it has left.
    pub(super) fn hosts_of(&self, session: &Session) -> Vec<Host> {
        let mut hosts = self.allowed_hosts(&session.entitlement);
        if let Some(lineage) = &session.lineage {
            hosts.retain(|host| !lineage.left.contains(&host.worker));
        }
        hosts
    }

    /// Moves slots from workers that carry several to those that carry fewer: the session goes on
    /// there from the snapshot that was just taken.
    pub(super) fn even_out(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.sessions.get(peer) else { return };
        let hosts = self.hosts_of(session);
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        lineage.evened();
        let there = |worker| self.workers.by_id(worker).is_some();
        let slots = &mut session.catalogue.slots;
        let moves = slots.evened(&hosts);
        if moves.is_empty() || lineage.base_on(there).is_err() {
            return;
        }
        let (before, arithmetics) = (slots.home_worker(), slots.arithmetics());
        for (slot, host) in &moves {
            slots.settle(*slot, *host);
        }
        let after = slots.home_worker();
        if before != after {
            before.into_iter().for_each(|worker| self.workers.release(worker));
            after.into_iter().for_each(|worker| self.workers.settle(worker));
        }
        self.journal.add_slots(session);
        let number = |slot: SlotId| session.catalogue.slots.number(slot).unwrap_or(slot.0);
        let name = |id: WorkerId| self.workers.name_of(id);
        let moved =
            moves.iter().map(|(slot, to)| format!("{} to {}", number(*slot), name(to.worker)));
        let text = format!("slots move: {}", moved.collect::<Vec<_>>().join(", "));
        // What could be lost was looked for above.
        let _ = self.recover(now, peer, Cause::Moved(&text));
        self.tell_arithmetic(peer, &arithmetics);
        self.pump(now);
    }

    /// What decides on a session's results has changed as its stream was planned: new slots get
    /// workers, and the journal knows.
    pub(super) fn terms_changed(&mut self, peer: PeerId) {
        let Some(session) = self.sessions.get(peer) else { return };
        let hosts = self.allowed_hosts(&session.entitlement);
        let Some(session) = self.sessions.get_mut(peer) else { return };
        session.catalogue.slots.house(&hosts);
        session.plans.slots_moved();
        self.journal.add_slots(session);
    }

    /// Has values of a session's base copied to another worker where only one has them, so that it
    /// may be lost as well.
    pub(super) fn repair(&mut self, peer: PeerId) {
        let Some(Session { number, lineage: Some(lineage), .. }) = self.sessions.get_mut(peer)
        else {
            return;
        };
        let there = |worker: WorkerId| self.workers.by_id(worker).is_some();
        for (slot, holder) in lineage.single_copies(there) {
            let Some(to) = keeper(&self.workers, holder, &lineage.unreachable) else { continue };
            let Some(snapshot) = lineage.copy_to(slot, to) else { continue };
            let Some(holder) = self.workers.by_id(holder) else { continue };
            let message = Message::HandOver { session: *number, slot, snapshot, to: Some(to) };
            self.outbox.push(holder.peer, message);
        }
    }
}
