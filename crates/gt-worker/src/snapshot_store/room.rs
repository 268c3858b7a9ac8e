//! The memory of snapshots: their limit, moving them to disk, and evicting them in favour of
//! tensors.

use gt_ir::message::{Failure, WorkerToServer};
use gt_ir::snapshot::{Owner, Unkept};
use gt_ir::{Content, SessionId, TensorId};

use super::{Amounts, Medium};
use crate::device::Device;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::work::{FileJob, Out};
use crate::worker::Worker;

impl<E: Engine> Device<E> {
    /// Returns the bytes of memory that snapshots may take: those that tensors leave free, or the
    /// host's memory for spilled tensors of a device with memory of its own.
    fn memory_for_snapshots(&self) -> u64 {
        let (options, held) = (&self.options, &self.held);
        match (self.engine.is_on_host(), options.memory) {
            (true, Some(memory)) => memory.saturating_sub(held.bytes + held.granted),
            (true, None) => u64::MAX,
            (false, _) => options.host_memory.saturating_sub(held.spilled_bytes - held.disk_bytes),
        }
    }

    /// Returns the bytes that snapshots may take on disk.
    fn disk_for_snapshots(&self) -> u64 {
        let held = &self.held;
        let tensors = held.disk_bytes + held.writing.values().sum::<u64>();
        self.options.spill.saturating_sub(tensors)
    }

    /// Returns the bytes left for more snapshots.
    pub fn room_for_snapshots(&self, kept: Amounts) -> u64 {
        let all = self.memory_for_snapshots().saturating_add(self.disk_for_snapshots());
        all.saturating_sub(kept.memory + kept.disk + kept.mapped)
    }

    /// Updates the bytes of snapshots.
    pub fn note_snapshots(&mut self, kept: Amounts) {
        self.stats.snapshot_bytes = kept.memory;
        self.stats.snapshot_disk_bytes = kept.disk + kept.mapped;
        if self.engine.is_on_host() {
            self.held.releases += u64::from(kept.memory < self.held.snapshots);
            (self.held.snapshots, self.held.spilling_snapshots) = (kept.memory, kept.moving);
        }
    }
}

impl<E: Engine> Worker<E> {
    /// Moves values of snapshots to disk while they exceed their memory.
    pub(crate) fn spill_excess_snapshots(&mut self, out: &mut Vec<Out>) {
        let kept = self.snapshots.amounts();
        let here = kept.memory - kept.moving;
        if here > 0 && self.device.options.spill > 0 {
            self.spill_snapshots(here.saturating_sub(self.device.memory_for_snapshots()), out);
        }
    }

    /// Moves values of snapshots to disk, as far as they fit, until `bytes` bytes of memory are
    /// free, or will be after the writes.
    pub(crate) fn spill_snapshots(&mut self, bytes: u64, out: &mut Vec<Out>) {
        let kept = self.snapshots.amounts();
        let room = self.device.disk_for_snapshots().saturating_sub(kept.disk + kept.moving);
        let bytes = bytes.min(room);
        if bytes == 0 || self.shortages.is_disk_full {
            return;
        }
        let least = self.device.options.spill_from;
        for (owner, tensor, data) in self.snapshots.move_away(bytes, least) {
            out.push(Out::Files(FileJob::SpillSnapshot { owner, tensor, data }));
        }
        self.device.note_snapshots(self.snapshots.amounts());
    }

    /// Handles a value of a snapshot that was written to disk, or could not be.
    pub(crate) fn snapshot_spilled(
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
    pub(crate) fn give_way(&mut self, medium: Medium, bytes: u64, out: &mut Vec<Out>) -> bool {
        if bytes == 0 || self.snapshots.amounts().on(medium) == 0 {
            return false;
        }
        let restored = self.lanes.values_mut().filter(|lane| !lane.is_restored);
        let pinned: Vec<SessionId> = restored.filter_map(Lane::restores).collect();
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
}
