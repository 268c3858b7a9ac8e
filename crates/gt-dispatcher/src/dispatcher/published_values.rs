//! The values of publications: the workers that have them, and those that need them.

use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::time::Duration;

use gt_ir::message::ServerToWorker;
use gt_ir::publication::PUBLISHED;
use gt_ir::snapshot::Backup;
use gt_ir::{SessionId, SlotId, WorkerId};

use super::Dispatcher;
use crate::library::{NeededValues, Publication, PublicationStage, PublishedSlot};
use crate::peer::PeerId;

/// How long a worker that could not store values is not asked to store them again.
pub(super) const RETRY: Duration = Duration::from_secs(30);

impl Dispatcher {
    /// Handles a worker that needs the values of a slot of a publication.
    pub(super) fn values_needed(
        &mut self,
        now: Duration,
        from: PeerId,
        id: SessionId,
        slot: SlotId,
    ) {
        let Some(worker) = self.peers.workers.get(from).map(|worker| worker.id) else { return };
        if self.library.get(id).and_then(|of| of.slot(slot)).is_none() {
            let ended = ServerToWorker::Retain { session: id, snapshot: None, next: 0 };
            return self.outbox.push(from, ended);
        }
        let needed = NeededValues { since: now, is_indirect: false };
        self.library.needed.entry((id, slot, worker)).or_insert(needed);
        self.send_values(now, id, slot, worker);
    }

    /// Has a worker that holds the values of a slot, if one is connected, send them to another one.
    fn send_values(&mut self, now: Duration, id: SessionId, slot: SlotId, to: WorkerId) {
        let Some(of) = self.library.get(id).and_then(|of| of.slot(slot)) else { return };
        let others = of.holders.iter().filter(|holder| **holder != to);
        let Some(holder) = others.clone().find_map(|id| self.peers.workers.by_id(*id)) else {
            if others.count() == 0 {
                self.end_publication(now, id, "the workers that had its values were lost");
            }
            return;
        };
        let (session, snapshot, to) = (id, PUBLISHED, Some(to));
        let message = ServerToWorker::HandOver { session, slot, snapshot, to };
        self.outbox.push(holder.peer, message);
    }

    /// Has a worker that cannot reach others send the values of a slot here, for those that need
    /// them.
    pub(super) fn send_indirectly(&mut self, id: SessionId, slot: SlotId, from: WorkerId) {
        let Some(holder) = self.peers.workers.by_id(from).map(|worker| worker.peer) else { return };
        let mut is_new = false;
        for ((of, at, to), needed) in &mut self.library.needed {
            if (*of, *at) == (id, slot) && *to != from {
                is_new |= !std::mem::replace(&mut needed.is_indirect, true);
            }
        }
        if is_new {
            let (session, snapshot) = (id, PUBLISHED);
            let message = ServerToWorker::HandOver { session, slot, snapshot, to: None };
            self.outbox.push(holder, message);
        }
    }

    /// Tries once more to have values copied to workers that could not store them a while ago.
    pub(super) fn retry_copies(&mut self, now: Duration) {
        let before = self.library.refused.len();
        self.library.refused.retain(|_, since| now < *since + RETRY);
        if self.library.refused.len() < before {
            self.copy_publications(now);
        }
    }

    /// Ends the publications whose values workers have awaited for too long, as those that have them
    /// on disk were not started again.
    pub(super) fn end_unmet(&mut self, now: Duration) {
        let limit = self.limits.worker_wait;
        let late = self.library.needed.iter().filter(|(_, of)| now >= of.since + limit);
        let late: Vec<(SessionId, SlotId, WorkerId)> = late.map(|(of, _)| *of).collect();
        for (id, slot, worker) in late {
            let Some(of) = self.library.get(id).and_then(|of| of.slot(slot)) else { continue };
            let is_connected = |id: &WorkerId| self.peers.workers.by_id(*id).is_some();
            if !of.holders.iter().any(is_connected) {
                let names: Vec<String> =
                    of.holders.iter().map(|id| self.peers.workers.name_of(*id)).collect();
                let reason = format!(
                    "the workers {}, which have its values in their --state, were not started again within {} s",
                    names.join(", "),
                    limit.as_secs_f64()
                );
                self.end_publication(now, id, &reason);
            } else {
                let needed = NeededValues { since: now, is_indirect: false };
                self.library.needed.insert((id, slot, worker), needed);
                self.send_values(now, id, slot, worker);
            }
        }
    }

    /// Returns the publications that have values on this worker and on none that stays.
    pub(super) fn leaving_publications(&self, worker: WorkerId) -> Vec<String> {
        let stays = |id: &WorkerId| *id != worker && self.peers.workers.stays(*id);
        let leaves = |of: &PublishedSlot| match of.storing {
            Some(_) => of.is_on(worker),
            None => of.holders.contains(&worker) && !of.holders.iter().any(stays),
        };
        let leaving = self.library.iter().filter(|it| it.slots.iter().any(leaves));
        leaving.map(Publication::version_name).collect()
    }

    /// Forwards values of a publication to the workers that need them and that the holder cannot
    /// reach.
    pub(super) fn forward_values(&mut self, backup: &Backup) {
        let of = (backup.owner.session, backup.owner.slot);
        for (id, slot, worker) in self.library.needed.keys() {
            if (*id, *slot) == of
                && let Some(worker) = self.peers.workers.by_id(*worker)
            {
                let backup = ServerToWorker::Backup(Box::new(backup.clone()));
                self.outbox.push(worker.peer, backup);
            }
        }
    }

    /// Handles the loss of a worker: what it held of publications is copied from others.
    pub(super) fn lose_values(&mut self, now: Duration, lost: WorkerId) {
        if self.library.is_empty() {
            return;
        }
        self.library.needed.retain(|(.., worker), _| *worker != lost);
        self.library.refused.retain(|(.., worker), _| *worker != lost);
        let may_return = self.peers.workers.may_rejoin(lost);
        let mut gone = Vec::new();
        for publication in self.library.iter_mut() {
            for of in &mut publication.slots {
                if !may_return {
                    of.holders.retain(|holder| *holder != lost);
                }
                let is_lost = match of.storing {
                    // If its session is restored, that publishes it once more.
                    Some((host, copy)) => host != lost && copy == Some(lost),
                    None => of.holders.is_empty(),
                };
                if is_lost {
                    gone.push(publication.id);
                }
            }
        }
        gone.dedup();
        for id in gone {
            self.end_publication(now, id, "a worker that had its values was lost");
        }
        self.resend_values(now);
        self.copy_publications(now);
    }

    /// Ends what a session that is not restored had not completely published, as the worker that
    /// stored it was lost.
    pub(super) fn end_unstored(&mut self, now: Duration, session: SessionId, lost: WorkerId) {
        let is_lost = |of: &PublishedSlot| of.storing.is_some_and(|(host, _)| host == lost);
        let all = self.library.iter().filter(|of| of.origin.0 == session);
        let all = all.filter(|of| of.slots.iter().any(is_lost));
        let all: Vec<SessionId> = all.map(|of| of.id).collect();
        for id in all {
            self.end_publication(now, id, "the worker that stored its values was lost");
        }
    }

    /// Has values copied to another worker that are on fewer than two workers that stay.
    pub(super) fn copy_publications(&mut self, now: Duration) {
        if self.library.is_empty() {
            return;
        }
        let workers = &self.peers.workers;
        let mut missing = Vec::new();
        for of in self.library.iter().filter(|of| of.stage != PublicationStage::Storing) {
            for PublishedSlot { slot, holders, .. } in &of.slots {
                let from = holders.iter().find(|holder| workers.by_id(**holder).is_some());
                let staying = holders.iter().filter(|holder| workers.stays(**holder)).count();
                let Some(from) = from.filter(|_| staying < 2) else { continue };
                let refused = self.library.refused.keys();
                let refused = refused.filter(|(id, at, _)| (*id, *at) == (of.id, *slot));
                let others = holders.iter().chain(refused.map(|(.., worker)| worker));
                let have: BTreeSet<_> = others.map(|other| (*from, *other)).collect();
                let to = workers.keeper(*from, &have).filter(|to| workers.stays(*to));
                missing.extend(to.map(|to| (of.id, *slot, to)));
            }
        }
        for of in missing {
            if let Entry::Vacant(place) = self.library.needed.entry(of) {
                place.insert(NeededValues { since: now, is_indirect: false });
                let (id, slot, to) = of;
                self.send_values(now, id, slot, to);
            }
        }
    }

    /// Has the values sent again that workers wait for: a holder was lost, or has returned.
    pub(super) fn resend_values(&mut self, now: Duration) {
        let needed: Vec<_> = self.library.needed.keys().copied().collect();
        for (id, slot, to) in needed {
            self.send_values(now, id, slot, to);
        }
    }
}
