//! Moving values of snapshots to disk.

use std::cmp::Reverse;

use gt_ir::snapshot::Owner;
use gt_ir::{Content, SessionId, TensorData, TensorId};

use super::SnapshotStore;
use super::values::{StoredValue, ValuePlace};

impl SnapshotStore {
    /// Returns values to be moved to disk, the largest of each slot first: at least `bytes` bytes
    /// in values of `least` bytes or more. Those that the engine uses in place, of the publications
    /// for which `is_used`, would stay in memory.
    pub fn move_away(
        &mut self,
        bytes: u64,
        least: u64,
        is_used: impl Fn(SessionId) -> bool,
    ) -> Vec<(Owner, TensorId, TensorData)> {
        let (mut moved, mut all) = (0, Vec::new());
        if !self.may_move {
            return all;
        }
        for (owner, kept) in self.owners.iter_mut().filter(|(owner, _)| !is_used(owner.session)) {
            let is_free = |value: &&StoredValue| {
                value.place == ValuePlace::Memory && value.saved.bytes() >= least.max(1)
            };
            let free = kept.values.values().filter(is_free);
            let mut largest: Vec<(u64, TensorId)> =
                free.map(|value| (value.saved.bytes(), value.saved.tensor)).collect();
            largest.sort_unstable_by_key(|(bytes, tensor)| (Reverse(*bytes), *tensor));
            for (size, tensor) in largest {
                if moved >= bytes {
                    return all;
                }
                let Some(value) = kept.values.get_mut(&tensor) else { continue };
                let Ok(Content::Data(data)) = &value.saved.result else { continue };
                all.push((*owner, tensor, data.clone()));
                value.place = ValuePlace::Moving;
                self.amounts.moving += size;
                moved += size;
            }
        }
        self.may_move = moved >= bytes;
        all
    }

    /// Records that a value is on disk now, or stays in memory: then none is tried until others are
    /// added.
    pub fn moved(&mut self, owner: Owner, tensor: TensorId, content: Option<Content>) {
        let kept = self.owners.get_mut(&owner);
        let value = kept.and_then(|kept| kept.values.get_mut(&tensor));
        // It may have been dropped and stored again meanwhile.
        let Some(value) = value.filter(|value| value.place == ValuePlace::Moving) else { return };
        self.may_move &= content.is_some();
        self.amounts.remove(value);
        value.place = if content.is_some() { ValuePlace::Disk } else { ValuePlace::Memory };
        if let Some(content) = content {
            value.saved.result = Ok(content);
        }
        self.amounts.add(value);
    }
}
