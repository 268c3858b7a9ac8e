//! Snapshots of sessions, taken as their streams go on: what they are made again from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::Message;
use gt_ir::snapshot::{self, Backup, Unkept};
use gt_ir::{SlotId, WorkerCommand, WorkerId};

use super::{Dispatcher, PeerId};
use crate::journal::JournalRecord;
use crate::lineage::{Copy, HandOver, Snapshot, Stage, State};
use crate::sessions::Session;
use crate::workers::{WorkerState, Workers};

/// A worker for the copy of another's values: the next one, on another machine if there is one.
pub(super) fn keeper(
    workers: &Workers,
    host: WorkerId,
    unreachable: &BTreeSet<(WorkerId, WorkerId)>,
) -> Option<WorkerId> {
    let own = workers.by_id(host)?;
    let others =
        workers.iter().filter(|other| other.id != host && !unreachable.contains(&(host, other.id)));
    let is_near = |other: &WorkerState| !other.machine.is_empty() && other.machine == own.machine;
    others.min_by_key(|other| (is_near(other), other.id < host, other.id)).map(|other| other.id)
}

impl Dispatcher {
    /// Takes snapshots of the sessions of which they are due.
    pub(super) fn take_snapshots(&mut self, now: Duration) {
        let there = self.sessions.iter().filter(|session| session.has_worker());
        let peers: Vec<PeerId> = there.map(|session| session.peer).collect();
        for peer in peers {
            self.take_snapshot_if_due(now, peer);
            self.end_snapshot(peer);
        }
    }

    /// Takes a snapshot of a session if it is due.
    pub(super) fn take_snapshot_if_due(&mut self, now: Duration, peer: PeerId) {
        if self.trials.is_under_way() {
            return;
        }
        let lineage = self.sessions.get(peer).and_then(|session| session.lineage.as_ref());
        if lineage.is_some_and(|lineage| lineage.may_move()) {
            return self.even_out(now, peer);
        }
        if let Some(Session { lineage: Some(lineage), device, .. }) = self.sessions.get(peer)
            && lineage.is_due(now, *device)
        {
            self.take_snapshot(now, peer);
        }
    }

    /// A batch of a session is planned, perhaps in part, with so many slots at its beginning. Returns
    /// whether the session has a lineage.
    pub(super) fn has_planned(&mut self, peer: PeerId, batch: u64, slots: usize) -> bool {
        let Some(session) = self.sessions.get_mut(peer) else { return false };
        let Some(lineage) = &mut session.lineage else { return false };
        let queued = session.queue.front().map(|next| next.batch);
        lineage.planned(batch, queued, slots);
        true
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
        catalogue.count();
        let empty: BTreeSet<SlotId> = catalogue.empty_slots().into_iter().collect();
        let mut copies = BTreeMap::new();
        for slot in catalogue.slots.every().filter(|slot| !empty.contains(slot)) {
            let Some(host) = catalogue.slots.host(slot) else { return };
            let keeper = keeper(&self.workers, host, &lineage.unreachable);
            copies.insert(slot, Copy { host, keeper, bytes: 0, kept: None });
        }
        let state = State { catalogue: catalogue.clone(), templates: templates.clone() };
        let snapshot = lineage.begin(*device, Arc::new(state));
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
        self.deliver(now, peer, 0, None);
        self.end_snapshot(peer);
    }

    /// The dispatcher keeps values of a snapshot, as no worker can.
    pub(super) fn keep_backup(&mut self, now: Duration, from: PeerId, backup: Backup) {
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
        let known = before.filter(|copy| copy.keeper.is_none()).and_then(|copy| copy.kept.as_ref());
        let Some(pending) = lineage.pending.as_mut().filter(|it| it.number == number) else {
            return;
        };
        let Some(copy) = pending.copies.get_mut(&owner.slot) else { return };
        if copy.host != worker || copy.keeper.is_some() {
            return;
        }
        let kept = copy.kept.get_or_insert_with(|| known.cloned().unwrap_or_default());
        kept.add(backup.values);
        if let Some(inventory) = backup.inventory {
            let result = kept.complete(inventory, limit);
            self.backed(now, from, (owner.session, owner.slot), number, result);
        }
    }

    /// A worker that others' copies are on, or whose lane has taken a snapshot, says how it went.
    pub(super) fn backed(
        &mut self,
        now: Duration,
        from: PeerId,
        (session, slot): (u32, SlotId),
        snapshot: u64,
        result: Result<u64, Unkept>,
    ) {
        let Some(Session { peer, received, lineage: Some(lineage), .. }) =
            self.sessions.numbered_mut(session)
        else {
            return;
        };
        let peer = *peer;
        let from = self.workers.get(from).map(|worker| worker.id);
        if lineage.base.as_ref().is_ok_and(|base| base.number == snapshot) {
            match (result, lineage.handing.get_mut(&slot)) {
                (Ok(_), _) => {
                    lineage.handing.remove(&slot);
                    lineage.copying.remove(&slot);
                    let there = |worker| self.workers.by_id(worker).is_some();
                    if let Some(from) = from
                        && lineage.base.as_mut().is_ok_and(|base| base.has_copy(slot, from, there))
                        && let Some(record) = lineage.base_record(session, *received)
                    {
                        self.journal.add(|| record);
                    }
                }
                (Err(Unkept::Unreachable(_)), Some(HandOver { holder, is_indirect }))
                    if from == Some(*holder) && !*is_indirect =>
                {
                    *is_indirect = true;
                    let message = Message::HandOver { session, slot, snapshot, to: None };
                    if let Some(holder) = self.workers.by_id(*holder) {
                        self.outbox.push(holder.peer, message);
                    }
                }
                // They come once more, or have come.
                (Err(Unkept::Unreachable(_) | Unkept::Incomplete), _) => {}
                (Err(reason), Some(_)) => {
                    let reason = format!("its tensors could not be made again: {reason}");
                    self.refuse(now, peer, reason);
                }
                (Err(reason), None) => {
                    let there = |worker| self.workers.by_id(worker).is_some();
                    if from.is_some_and(|from| lineage.lose_copy(now, slot, from, there)) {
                        self.lose_base(now, peer, &reason.to_string());
                    }
                }
            }
            return;
        }
        let Some(pending) = lineage.pending.as_mut().filter(|it| it.number == snapshot) else {
            return;
        };
        if matches!(result, Err(Unkept::Unreachable(_)))
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
            Err(reason) => self.abandon_snapshot(peer, &reason.to_string()),
        }
    }

    /// Completes the snapshot that is being taken of a session, once all of it is kept and all that
    /// was asked before it is answered.
    pub(super) fn end_snapshot(&mut self, peer: PeerId) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        if !lineage.is_taken() {
            return;
        }
        if let Some(pending) = lineage.pending.as_mut().filter(|_| self.journal.is_on) {
            // What was answered before it is not answered again once it is the base: the client
            // must have it.
            if pending.stage == Stage::Taken {
                pending.stage = Stage::Asked;
                self.outbox.push(peer, Message::Confirm { snapshot: pending.number });
            }
            return;
        }
        self.adopt_snapshot(peer);
    }

    /// A client has got all that was sent before a snapshot.
    pub(super) fn confirm(&mut self, peer: PeerId, snapshot: u64) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { lineage: Some(lineage), number, received, .. } = session else { return };
        let is_it =
            |pending: &&mut Snapshot| pending.number == snapshot && pending.stage == Stage::Asked;
        let Some(pending) = lineage.pending.as_mut().filter(is_it) else { return };
        pending.stage = Stage::Written;
        match lineage.pending_record(*number, *received) {
            Some(record) if self.journal.is_on => self.journal.add(|| record),
            _ => self.adopt_snapshot(peer),
        }
    }

    /// The snapshot that is being taken of a session becomes its base.
    pub(super) fn adopt_snapshot(&mut self, peer: PeerId) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { lineage: Some(lineage), number, .. } = session else { return };
        let (blocks, before) = lineage.complete();
        let Ok(base) = &lineage.base else { return };
        let retain = lineage.retain(*number);
        let mut holders = base.workers();
        holders.extend(before.iter().flat_map(Snapshot::workers));
        self.tell_holders(holders, &retain);
        self.give_blocks_back(peer, blocks);
    }

    /// Tells workers what to keep.
    fn tell_holders(&mut self, holders: BTreeSet<WorkerId>, retain: &Message) {
        for worker in holders.into_iter().filter_map(|id| self.workers.by_id(id)) {
            self.outbox.push(worker.peer, retain.clone());
        }
    }

    /// A client's shared memory is needed no longer.
    pub(super) fn give_blocks_back(&mut self, client: PeerId, blocks: Vec<u128>) {
        for token in blocks {
            self.outbox.push(client, Message::Release { token });
        }
    }

    /// The snapshot that is being taken of a session fails.
    fn abandon_snapshot(&mut self, peer: PeerId, reason: &str) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { lineage, number, .. } = session;
        let Some(lineage) = lineage else { return };
        let Some(pending) = &lineage.pending else { return };
        let mut holders = pending.workers();
        holders.extend(lineage.base.as_ref().iter().flat_map(|base| base.workers()));
        let is_written = pending.stage == Stage::Written;
        let is_unkept = lineage.abandon(reason);
        if is_unkept {
            let (session, from, reason) = (*number, lineage.log.first(), reason.to_string());
            self.journal.add(|| JournalRecord::Unkept { session, from, reason });
        } else if is_written {
            // The journal has it as the base.
            self.journal.add_session(session);
        }
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { lineage: Some(lineage), number, .. } = session else { return };
        let retain = lineage.retain(*number);
        self.tell_holders(holders, &retain);
        if is_unkept {
            let text = format!("the session's tensors are lost if a worker is: {reason}");
            self.outbox.push(peer, Message::Notice { text });
        }
    }

    /// A worker keeps the values of a session's base no longer.
    fn lose_base(&mut self, now: Duration, peer: PeerId, reason: &str) {
        let lineage = self.sessions.get(peer).and_then(|session| session.lineage.as_ref());
        if lineage.is_some_and(|lineage| lineage.is_restored()) {
            let reason = format!("its tensors could not be made again: {reason}");
            return self.refuse(now, peer, reason);
        }
        self.unprotect(peer, reason);
        let text = format!("the session's tensors are lost if a worker is: {reason}");
        self.outbox.push(peer, Message::Notice { text });
    }

    /// A session has nothing any more that it could go back to, for this reason.
    pub(super) fn unprotect(&mut self, peer: PeerId, reason: &str) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        let Session { lineage: Some(lineage), number, .. } = session else { return };
        let snapshots = lineage.base.as_ref().ok().into_iter().chain(&lineage.pending);
        let holders = snapshots.flat_map(Snapshot::workers).collect();
        let blocks = lineage.give_up(reason.to_string());
        let (session, from) = (*number, lineage.log.first());
        let retain = lineage.retain(session);
        let reason = reason.to_string();
        self.journal.add(|| JournalRecord::Unkept { session, from, reason });
        self.tell_holders(holders, &retain);
        self.give_blocks_back(peer, blocks);
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

    /// A worker has mapped a client's shared memory. It stays until the values are in a snapshot.
    pub(super) fn release(&mut self, now: Duration, owner: PeerId, token: u128) {
        let lineage = self.sessions.get_mut(owner).and_then(|session| session.lineage.as_mut());
        if !lineage.is_some_and(|lineage| lineage.hold(now, token)) {
            self.outbox.push(owner, Message::Release { token });
        }
    }
}
