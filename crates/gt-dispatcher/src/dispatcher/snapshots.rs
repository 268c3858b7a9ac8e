//! Takes snapshots of sessions while their streams continue, and tracks which workers hold their
//! values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{ServerToClient, ServerToWorker};
use gt_ir::publication::is_publication;
use gt_ir::snapshot::{self, Backup, Unkept};
use gt_ir::{SessionId, SlotId, WorkerCommand, WorkerId};

use super::Dispatcher;
use crate::journal::{JournalRecord, SnapshotState};
use crate::lineage::{HandOver, SessionSnapshot, SlotCopy, SnapshotStage};
use crate::peer::PeerId;
use crate::sessions::{ClientSession, Planning};

impl Dispatcher {
    /// Takes snapshots of the sessions for which they are due.
    pub(super) fn take_snapshots(&mut self, now: Duration) {
        let with_workers = self.peers.sessions.iter().filter(|session| session.has_worker());
        let peers: Vec<PeerId> = with_workers.map(|session| session.identity.peer).collect();
        for peer in peers {
            self.take_snapshot_if_due(now, peer);
            self.end_snapshot(peer);
        }
    }

    /// Takes a snapshot of a session if it is due.
    pub(super) fn take_snapshot_if_due(&mut self, now: Duration, peer: PeerId) {
        if self.trials.is_running() {
            return;
        }
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let Some(lineage) = &session.lineage else { return };
        if session.phase.is_rewound() {
            return;
        }
        if lineage.may_rebalance() {
            self.rebalance_slots(now, peer);
        } else if lineage.is_due(now, session.account.device) {
            self.take_snapshot(now, peer);
        }
    }

    /// Notes that a batch of a session is planned, perhaps in part, with this number of slots at
    /// its beginning. Returns whether the session has a lineage.
    pub(super) fn note_planned(&mut self, peer: PeerId, batch: u64, slots: usize) -> bool {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return false };
        let Some(lineage) = &mut session.lineage else { return false };
        let queued = session.queue.batches.front().map(|next| next.batch);
        lineage.planned(batch, queued, slots);
        true
    }

    /// Takes a snapshot of a session at this point of its stream, if it is between two batches.
    fn take_snapshot(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let ClientSession { identity, queue, planning, lineage, account, .. } = session;
        let Planning { catalogue, templates, kept, borrowed, .. } = planning;
        let Some(lineage) = lineage else { return };
        // If it cannot be taken here, the next attempt follows after a pause.
        lineage.try_at(now);
        if queue.is_expanded
            || queue.batches.front().is_some_and(|next| lineage.is_begun(next.batch))
        {
            return;
        }
        catalogue.count_copies();
        // A slot that waits for values to be handed over takes part, so that none is awaited from
        // an earlier base once this one is complete.
        let is_handed = |slot: &SlotId| lineage.handovers.contains_key(slot);
        let empty: BTreeSet<SlotId> =
            catalogue.empty_slots().into_iter().filter(|slot| !is_handed(slot)).collect();
        let mut copies = BTreeMap::new();
        for slot in catalogue.slots.all().filter(|slot| !empty.contains(slot)) {
            let Some(host) = catalogue.slots.host(slot) else { return };
            let workers = &self.peers.workers;
            let own = workers.by_id(host).filter(|it| it.is_saving()).map(|it| it.id);
            // A worker that is drained and is the only one keeps the values in its own folder.
            let keeper = workers.keeper(host, &lineage.unreachable).or(own);
            copies.insert(slot, SlotCopy { host, keeper, bytes: 0, kept: None });
        }
        let state = SnapshotState {
            catalogue: catalogue.clone(),
            templates: templates.clone(),
            kept: kept.clone(),
            borrowed: borrowed.clone(),
            numbers: queue.numbers,
        };
        let snapshot = lineage.begin(account.device, Arc::new(state));
        let session = identity.number;
        for (slot, copy) in &copies {
            let keeper = copy.keeper;
            if keeper == Some(copy.host) {
                self.streams.push(*slot, WorkerCommand::Slots(catalogue.slots.hosts()));
            }
            let most = if keeper.is_some() { u64::MAX } else { lineage.max_kept_bytes() };
            let (number, published) = (snapshot, None);
            let command = snapshot::Snapshot { session, number, keeper, most, published };
            self.streams.push(*slot, WorkerCommand::Snapshot(Box::new(command)));
        }
        if let Some(pending) = &mut lineage.pending {
            pending.open = copies.keys().copied().collect();
            pending.copies = copies;
        }
        self.deliver(now, peer, 0, None);
        self.end_snapshot(peer);
    }

    /// Stores values of a snapshot that no worker can hold, or forwards those of a handover.
    pub(super) fn keep_backup(&mut self, now: Duration, from: PeerId, backup: Backup) {
        let (owner, number) = (backup.owner, backup.snapshot);
        if is_publication(owner.session) {
            return self.forward_values(&backup);
        }
        let Some(worker) = self.peers.workers.get(from).map(|worker| worker.id) else { return };
        let Some(session) = self.peers.sessions.by_number_mut(owner.session) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        if lineage.handovers.contains_key(&owner.slot) {
            let host = session.planning.catalogue.slots.host(owner.slot);
            if let Some(host) = host.and_then(|worker| self.peers.workers.by_id(worker)) {
                self.outbox.push(host.peer, ServerToWorker::Backup(Box::new(backup)));
            }
            return;
        }
        let limit = lineage.max_kept_bytes();
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
            self.backup_reported(now, from, (owner.session, owner.slot), number, result);
        }
    }

    /// Handles a worker's report on a snapshot or handover: the worker holds a copy, or its lane
    /// has taken the snapshot, or either failed.
    pub(super) fn backup_reported(
        &mut self,
        now: Duration,
        from: PeerId,
        (session, slot): (SessionId, SlotId),
        snapshot: u64,
        result: Result<u64, Unkept>,
    ) {
        if is_publication(session) {
            return self.publication_reported(now, from, (session, slot), result);
        }
        let Some(ClientSession { identity, queue, lineage: Some(lineage), .. }) =
            self.peers.sessions.by_number_mut(session)
        else {
            return;
        };
        let peer = identity.peer;
        let from = self.peers.workers.get(from).map(|worker| worker.id);
        if lineage.base.as_ref().is_ok_and(|base| base.number == snapshot) {
            match (result, lineage.handovers.get_mut(&slot)) {
                (Ok(_), _) => {
                    lineage.handovers.remove(&slot);
                    lineage.copying.remove(&slot);
                    let stays = |worker| self.peers.workers.stays(worker);
                    if let Some(from) = from
                        && lineage.base.as_mut().is_ok_and(|base| base.has_copy(slot, from, stays))
                        && let Some(record) = lineage.base_record(session, queue.received)
                    {
                        self.journal.add(|| record);
                    }
                }
                (Err(Unkept::Unreachable(_)), Some(HandOver { holder, is_indirect }))
                    if from == Some(*holder) && !*is_indirect =>
                {
                    *is_indirect = true;
                    let message = ServerToWorker::HandOver { session, slot, snapshot, to: None };
                    if let Some(holder) = self.peers.workers.by_id(*holder) {
                        self.outbox.push(holder.peer, message);
                    }
                }
                // The values are sent once more, or have already arrived.
                (Err(Unkept::Unreachable(_) | Unkept::Incomplete), _) => {}
                (Err(reason), Some(_)) => {
                    let reason = format!("its tensors could not be restored: {reason}");
                    self.refuse(now, peer, reason);
                }
                (Err(reason), None) => {
                    let is_connected = |worker| self.peers.workers.by_id(worker).is_some();
                    if from.is_some_and(|from| lineage.lose_copy(now, slot, from, is_connected)) {
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
            // The next snapshot uses another worker.
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

    /// Completes a session's pending snapshot, once all of its values are stored and all requests
    /// before it are answered.
    pub(super) fn end_snapshot(&mut self, peer: PeerId) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let is_stored = session.lineage.as_ref().is_some_and(|it| it.is_pending_stored());
        if !is_stored || self.is_publishing(session.identity.number) {
            return;
        }
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        if let Some(pending) = lineage.pending.as_mut().filter(|_| self.journal.is_on) {
            // Answers before the snapshot are not repeated once it is the base, so the client must
            // have received them.
            if pending.stage == SnapshotStage::Collecting {
                pending.stage = SnapshotStage::Confirming;
                let number = pending.number;
                match session.identity.is_detached {
                    // Nobody waits for answers.
                    true => self.snapshot_confirmed(peer, number),
                    false => self.outbox.push(peer, ServerToClient::Confirm { snapshot: number }),
                }
            }
            return;
        }
        self.adopt_snapshot(peer);
    }

    /// Handles a client's confirmation that it has received all messages sent before a snapshot.
    pub(super) fn snapshot_confirmed(&mut self, peer: PeerId, snapshot: u64) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let ClientSession { identity, queue, lineage: Some(lineage), .. } = session else {
            return;
        };
        let is_it = |pending: &&mut SessionSnapshot| {
            pending.number == snapshot && pending.stage == SnapshotStage::Confirming
        };
        let Some(pending) = lineage.pending.as_mut().filter(is_it) else { return };
        pending.stage = SnapshotStage::Writing;
        match lineage.pending_record(identity.number, queue.received) {
            Some(record) if self.journal.is_on => self.journal.add(|| record),
            _ => self.adopt_snapshot(peer),
        }
    }

    /// Makes a session's pending snapshot its base.
    pub(super) fn adopt_snapshot(&mut self, peer: PeerId) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let ClientSession { identity, lineage: Some(lineage), .. } = session else { return };
        let (blocks, before) = lineage.complete();
        let Ok(base) = &lineage.base else { return };
        let retain = lineage.retain(identity.number);
        let mut holders = base.workers();
        holders.extend(before.iter().flat_map(SessionSnapshot::workers));
        self.notify_holders(holders, &retain);
        self.release_blocks(peer, blocks);
    }

    /// Notifies workers which snapshots to retain.
    fn notify_holders(&mut self, holders: BTreeSet<WorkerId>, retain: &ServerToWorker) {
        for worker in holders.into_iter().filter_map(|id| self.peers.workers.by_id(id)) {
            self.outbox.push(worker.peer, retain.clone());
        }
    }

    /// Releases a client's shared memory.
    pub(super) fn release_blocks(&mut self, client: PeerId, blocks: Vec<u128>) {
        for token in blocks {
            self.outbox.release(client, token);
        }
    }

    /// Abandons a session's pending snapshot.
    fn abandon_snapshot(&mut self, peer: PeerId, reason: &str) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let ClientSession { identity, lineage, .. } = session;
        let Some(lineage) = lineage else { return };
        let Some(pending) = &lineage.pending else { return };
        let mut holders = pending.workers();
        holders.extend(lineage.base.as_ref().iter().flat_map(|base| base.workers()));
        let is_written = pending.stage == SnapshotStage::Writing;
        let is_unkept = lineage.abandon(reason);
        if is_unkept {
            let (session, from, reason) =
                (identity.number, lineage.log.first(), reason.to_string());
            self.journal.add(|| JournalRecord::Unkept { session, from, reason });
        } else if is_written {
            // The journal has the abandoned snapshot as the base.
            self.journal.extend(|| session.records());
        }
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let ClientSession { identity, lineage: Some(lineage), .. } = session else { return };
        let retain = lineage.retain(identity.number);
        self.notify_holders(holders, &retain);
        if is_unkept {
            let text = format!("the session's tensors will be lost if a worker is lost: {reason}");
            self.outbox.push(peer, ServerToClient::Notice { text });
        }
    }

    /// Handles the loss of a session's base: a worker has dropped its values.
    fn lose_base(&mut self, now: Duration, peer: PeerId, reason: &str) {
        if self.peers.sessions.get(peer).is_some_and(ClientSession::is_restoring) {
            let reason = format!("its tensors could not be restored: {reason}");
            return self.refuse(now, peer, reason);
        }
        self.unprotect(peer, reason);
        let text = format!("the session's tensors will be lost if a worker is lost: {reason}");
        self.outbox.push(peer, ServerToClient::Notice { text });
    }

    /// Marks a session as having no snapshot to be restored from, for this reason.
    pub(super) fn unprotect(&mut self, peer: PeerId, reason: &str) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let ClientSession { identity, lineage: Some(lineage), .. } = session else { return };
        let snapshots = lineage.base.as_ref().ok().into_iter().chain(&lineage.pending);
        let holders = snapshots.flat_map(SessionSnapshot::workers).collect();
        let blocks = lineage.give_up(reason.to_string());
        let (session, from) = (identity.number, lineage.log.first());
        let retain = lineage.retain(session);
        let reason = reason.to_string();
        self.journal.add(|| JournalRecord::Unkept { session, from, reason });
        self.notify_holders(holders, &retain);
        self.release_blocks(peer, blocks);
    }

    /// Handles the loss of a worker that holds values of a session: the next snapshot stores them
    /// elsewhere.
    pub(super) fn lose_copies(&mut self, peer: PeerId, worker: WorkerId) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        let Some(lineage) = &mut session.lineage else { return };
        // The lost worker may have been the one that could not be reached.
        lineage.abandoned_workers.clear();
        lineage.unreachable.retain(|(from, to)| *from != worker && *to != worker);
        lineage.lacks_second_copy |= lineage.base.as_ref().is_ok_and(|base| base.involves(worker));
        if lineage.pending.as_ref().is_some_and(|pending| pending.involves(worker)) {
            self.abandon_snapshot(peer, "a worker was lost");
        }
    }

    /// Releases a client's shared memory that a worker has mapped, once its values are in a
    /// snapshot.
    pub(super) fn release(&mut self, now: Duration, owner: PeerId, token: u128) {
        let lineage =
            self.peers.sessions.get_mut(owner).and_then(|session| session.lineage.as_mut());
        if !lineage.is_some_and(|lineage| lineage.hold(now, token)) {
            self.outbox.release(owner, token);
        }
    }
}
