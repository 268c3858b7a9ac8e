//! The memory that snapshots take up: what is left for them, how they go to the disk, and how they
//! give way to tensors.

use gt_ir::message::{Failure, Message};
use gt_ir::snapshot::{Owner, Unkept};
use gt_ir::{Content, TensorId};

use super::{Amounts, Medium};
use crate::device::Device;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::work::{FileJob, Out};
use crate::worker::Worker;

impl<E: Engine> Device<E> {
    /// The bytes of memory that snapshots may take up: what tensors leave free, or what the host has
    /// for tensors of a device with memory of its own.
    fn memory_for_snapshots(&self) -> u64 {
        let (options, held) = (&self.options, &self.held);
        match (self.engine.is_on_host(), options.memory) {
            (true, Some(memory)) => memory.saturating_sub(held.bytes + held.granted),
            (true, None) => u64::MAX,
            (false, _) => options.host_memory.saturating_sub(held.spilled_bytes - held.disk_bytes),
        }
    }

    /// The bytes that snapshots may take up on the disk.
    fn disk_for_snapshots(&self) -> u64 {
        let held = &self.held;
        let tensors = held.disk_bytes + held.writing.values().sum::<u64>();
        self.options.spill.saturating_sub(tensors)
    }

    /// The bytes that more snapshots may take up beside these.
    pub fn room_for_snapshots(&self, kept: Amounts) -> u64 {
        let all = self.memory_for_snapshots().saturating_add(self.disk_for_snapshots());
        all.saturating_sub(kept.memory + kept.disk + kept.mapped)
    }

    /// Snapshots take up so much now.
    pub fn note_snapshots(&mut self, kept: Amounts) {
        self.stats.snapshot_bytes = kept.memory;
        self.stats.snapshot_disk_bytes = kept.disk + kept.mapped;
        if self.engine.is_on_host() {
            self.held.releases += u64::from(kept.memory < self.held.snapshots);
            (self.held.snapshots, self.held.shelving) = (kept.memory, kept.moving);
        }
    }
}

impl<E: Engine> Worker<E> {
    /// Moves values of snapshots to the disk that take up more memory than they may.
    pub(crate) fn shelve_excess(&mut self, out: &mut Vec<Out>) {
        let kept = self.vault.amounts();
        let here = kept.memory - kept.moving;
        if here > 0 && self.device.options.spill > 0 {
            self.shelve(here.saturating_sub(self.device.memory_for_snapshots()), out);
        }
    }

    /// Moves values of snapshots to the disk, as far as there is room, until so many bytes of memory
    /// are free or will be when they are written.
    pub(crate) fn shelve(&mut self, bytes: u64, out: &mut Vec<Out>) {
        let kept = self.vault.amounts();
        let room = self.device.disk_for_snapshots().saturating_sub(kept.disk + kept.moving);
        let bytes = bytes.min(room);
        if bytes == 0 || self.shortages.is_disk_full {
            return;
        }
        let least = self.device.options.spill_from;
        for (owner, tensor, data) in self.vault.move_away(bytes, least) {
            out.push(Out::Files(FileJob::Shelve { owner, tensor, data }));
        }
        self.device.note_snapshots(self.vault.amounts());
    }

    /// A value of a snapshot was written to disk, or could not be.
    pub(crate) fn shelved(
        &mut self,
        owner: Owner,
        tensor: TensorId,
        result: Result<Content, Failure>,
    ) {
        self.shortages.retries = true;
        self.vault.moved(owner, tensor, result.ok());
        self.device.note_snapshots(self.vault.amounts());
    }

    /// Drops snapshots to free memory or disk space for tensors: their sessions are not protected until
    /// others are taken. Those stay that lanes are made again from. Returns whether any is dropped.
    pub(crate) fn give_way(&mut self, medium: Medium, bytes: u64, out: &mut Vec<Out>) -> bool {
        if bytes == 0 || self.vault.amounts().on(medium) == 0 {
            return false;
        }
        let restored = self.lanes.values_mut().filter(|lane| !lane.is_restored);
        let pinned: Vec<u32> = restored.filter_map(Lane::restores).collect();
        let name = &self.device.stats.name;
        let medium_name = medium.name();
        let reason =
            format!("the worker '{name}' needed the {medium_name} of its snapshot for tensors");
        let dropped = self.vault.give_way(medium, bytes, &pinned);
        let is_any = !dropped.is_empty();
        for (owner, snapshot) in dropped {
            let Owner { session, slot } = owner;
            let result = Err(Unkept::Dropped(reason.clone()));
            let backed = Message::Backed { session, slot, snapshot, result };
            out.push(Out::Dispatcher(backed));
        }
        self.device.note_snapshots(self.vault.amounts());
        is_any
    }
}
