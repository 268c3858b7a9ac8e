//! The memory that snapshots take up: what is left for them, and how they give way to tensors.

use gt_ir::message::Message;
use gt_ir::snapshot::Unkept;

use crate::device::Device;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::work::Out;
use crate::worker::Worker;

impl<E: Engine> Device<E> {
    /// The bytes that more snapshots may take up beside so many: of the memory that tensors leave
    /// free, or of what the host has for tensors of a device with memory of its own.
    pub fn room_for_snapshots(&self, kept: u64) -> u64 {
        let (options, held) = (&self.options, &self.held);
        match (self.engine.is_on_host(), options.memory) {
            (true, Some(memory)) => memory.saturating_sub(held.bytes + held.granted + kept),
            (true, None) => u64::MAX,
            (false, _) => {
                let on_host = held.spilled_bytes - held.disk_bytes;
                options.host_memory.saturating_sub(on_host + kept)
            }
        }
    }

    /// Snapshots take up so many bytes now.
    pub fn note_snapshots(&mut self, bytes: u64) {
        if self.engine.is_on_host() {
            self.held.releases += u64::from(bytes < self.held.snapshots);
            self.held.snapshots = bytes;
        }
    }
}

impl<E: Engine> Worker<E> {
    /// Drops snapshots to free memory for tensors: their sessions are not protected until others
    /// are taken. Those stay that lanes are made again from.
    pub(crate) fn give_way(&mut self, bytes: u64, out: &mut Vec<Out>) {
        if bytes == 0 || self.device.held.snapshots == 0 {
            return;
        }
        let restored = self.lanes.values_mut().filter(|lane| !lane.is_restored);
        let pinned: Vec<u32> = restored.filter_map(Lane::restores).collect();
        let name = &self.device.stats.name;
        let reason = format!("the worker '{name}' needed the memory of its snapshot for tensors");
        for (owner, snapshot) in self.vault.give_way(bytes, &pinned) {
            let (session, slot, result) =
                (owner.session, owner.slot, Err(Unkept::Dropped(reason.clone())));
            let backed = Message::Backed { session, slot, snapshot, result };
            out.push(Out::Dispatcher(backed));
        }
        self.device.note_snapshots(self.vault.bytes());
    }
}
