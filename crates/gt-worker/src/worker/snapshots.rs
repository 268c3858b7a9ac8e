//! Snapshots: receiving copies, handing them over and dropping them, moving them to disk, and
//! evicting them in favour of tensors.

use gt_ir::message::{Failure, WorkerToServer};
use gt_ir::publication::{PUBLISHED, is_publication};
use gt_ir::snapshot::{Backup, Owner, Unkept};
use gt_ir::{Content, SessionId, TensorId, WorkerId};

use super::Worker;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::snapshot_store::Medium;
use crate::work::{FileJob, Out};

impl<E: Engine> Worker<E> {
    /// Moves values of snapshots to disk while they exceed their memory.
    pub(super) fn spill_excess_snapshots(&mut self, out: &mut Vec<Out>) {
        let kept = self.snapshots.amounts();
        let here = kept.memory - kept.moving;
        if here > 0 && self.device.options.spill > 0 {
            self.spill_snapshots(here.saturating_sub(self.device.memory_for_snapshots()), out);
        }
    }

    /// Moves values of snapshots to disk, as far as they fit, until `bytes` bytes of memory are
    /// free, or will be after the writes.
    pub(super) fn spill_snapshots(&mut self, bytes: u64, out: &mut Vec<Out>) {
        let kept = self.snapshots.amounts();
        let room = self.device.disk_for_snapshots().saturating_sub(kept.disk + kept.moving);
        let bytes = bytes.min(room);
        if bytes == 0 || self.shortages.is_disk_full {
            return;
        }
        let least = self.device.options.spill_from;
        let library = &self.device.library;
        // A device has copies of the values.
        let is_here = self.device.engine.is_on_host();
        let is_used = |publication| is_here && library.has(publication);
        let moved = self.snapshots.move_away(bytes, least, is_used);
        for (owner, tensor, data) in moved {
            out.push(Out::Files(FileJob::SpillSnapshot { owner, tensor, data }));
        }
        self.device.note_snapshots(self.snapshots.amounts());
    }

    /// Handles a value of a snapshot that was written to disk, or could not be.
    pub(super) fn snapshot_spilled(
        &mut self,
        owner: Owner,
        tensor: TensorId,
        result: Result<Content, Failure>,
    ) {
        self.shortages.retries = true;
        self.snapshots.moved(owner, tensor, result.ok());
        self.device.note_snapshots(self.snapshots.amounts());
    }

    /// Drops snapshots to free memory or disk space for tensors: their sessions are not protected
    /// until the next snapshot. Those from which lanes are being restored stay. Returns whether any
    /// was dropped.
    pub(super) fn give_way(&mut self, medium: Medium, bytes: u64, out: &mut Vec<Out>) -> bool {
        if bytes == 0 || self.snapshots.amounts().on(medium) == 0 {
            return false;
        }
        let pinned: Vec<SessionId> = self.restored().map(|(session, _)| session).collect();
        let name = &self.device.stats.name;
        let medium_name = medium.name();
        let reason =
            format!("the worker '{name}' needed the {medium_name} of its snapshot for tensors");
        let dropped = self.snapshots.give_way(medium, bytes, &pinned);
        let is_any = !dropped.is_empty();
        for (owner, snapshot) in dropped {
            let Owner { session, slot } = owner;
            let result = Err(Unkept::Dropped(reason.clone()));
            let backed = WorkerToServer::BackupStored { session, slot, snapshot, result };
            out.push(Out::Server(backed));
        }
        self.device.note_snapshots(self.snapshots.amounts());
        is_any
    }

    /// Stores values of a lane's snapshot; after the last of them, lanes can restore it.
    pub(super) fn receive_backup(&mut self, backup: Backup, out: &mut Vec<Out>) {
        let (owner, snapshot) = (backup.owner, backup.snapshot);
        let room = self.device.room_for_snapshots(self.snapshots.amounts());
        let received = self.snapshots.receive(backup, room);
        self.device.note_snapshots(self.snapshots.amounts());
        let Some(result) = received else { return };
        let refused = result.as_ref().err().cloned();
        let Owner { session, slot } = owner;
        out.push(Out::Server(WorkerToServer::BackupStored { session, slot, snapshot, result }));
        if snapshot == PUBLISHED {
            match refused {
                None => self.values_arrived(owner, out),
                Some(reason) => self.values_refused(owner, &reason),
            }
        }
        self.wake_unrestored();
    }

    /// Wakes lanes that wait for snapshots.
    fn wake_unrestored(&mut self) {
        let waiting = self.lanes.values().filter(|lane| !lane.is_restored).map(|lane| lane.id);
        for id in waiting.collect::<Vec<_>>() {
            self.wake(id);
        }
    }

    /// Returns the snapshots from which lanes are to be restored, with their sessions.
    fn restored(&mut self) -> impl Iterator<Item = (SessionId, u64)> {
        self.lanes.values_mut().filter(|lane| !lane.is_restored).filter_map(Lane::restores)
    }

    /// Drops a session's snapshots except one, those from the number `next` on, and one from which a
    /// lane here is yet to be restored: the server may have given the session up as it was.
    pub(super) fn retain(&mut self, session: SessionId, snapshot: Option<u64>, next: u64) {
        let of_it = |(of, number): (SessionId, u64)| (of == session).then_some(number);
        let pinned: Vec<u64> = self.restored().filter_map(of_it).collect();
        self.snapshots.retain(session, snapshot, next, &pinned);
        self.device.note_snapshots(self.snapshots.amounts());
        if snapshot.is_none() && is_publication(session) && !self.device.library.is_empty() {
            self.end_publication(session);
        }
        self.wake_unrestored();
    }

    /// Sends a snapshot to a worker that restores it, or to the dispatcher.
    pub(super) fn hand_over(
        &mut self,
        owner: Owner,
        snapshot: u64,
        to: Option<WorkerId>,
        out: &mut Vec<Out>,
    ) {
        match self.snapshots.hand_over(owner, snapshot) {
            Some(all) => out.extend(all.into_iter().map(|backup| Out::backup(to, backup))),
            None => {
                let Owner { session, slot } = owner;
                let reason = "the worker that had its values dropped them".into();
                let result = Err(Unkept::Dropped(reason));
                let backed = WorkerToServer::BackupStored { session, slot, snapshot, result };
                out.push(Out::Server(backed));
            }
        }
    }
}
