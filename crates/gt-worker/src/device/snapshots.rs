//! The memory and disk space for snapshots.

use super::Device;
use crate::engine::Engine;
use crate::snapshot_store::Amounts;

impl<E: Engine> Device<E> {
    /// Returns the bytes of memory that snapshots may take: those that tensors leave free, or the
    /// host's memory for spilled tensors of a device with memory of its own.
    pub fn memory_for_snapshots(&self) -> u64 {
        let (options, held) = (&self.options, &self.held);
        match (self.engine.is_on_host(), options.memory) {
            (true, Some(memory)) => memory.saturating_sub(held.bytes + held.granted),
            (true, None) => u64::MAX,
            (false, _) => options.host_memory.saturating_sub(held.spilled_bytes - held.disk_bytes),
        }
    }

    /// Returns the bytes that snapshots may take on disk.
    pub fn disk_for_snapshots(&self) -> u64 {
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
