//! The journal records of a worker's snapshots, from which it has them after a restart.

use gt_ir::SessionId;
use gt_ir::record;
use gt_ir::snapshot::{Inventory, Owner, SavedValue};

use super::SnapshotStore;
use super::part::parts;
use super::values::{StoredValue, ValuePlace};

/// A change of the snapshot store.
#[derive(Clone, PartialEq, Debug)]
pub enum SnapshotRecord {
    /// Values of a slot, which replace those of the same tensors.
    Values { owner: Owner, values: Vec<SavedValue> },
    /// A snapshot is complete.
    Complete { owner: Owner, snapshot: u64, inventory: Inventory },
    /// Of a session, one snapshot is retained, and those from the number `next` on; none without
    /// one.
    Retain { session: SessionId, snapshot: Option<u64>, next: u64 },
    /// All snapshots of a slot were dropped.
    Dropped { owner: Owner },
}

record!(enum SnapshotRecord {
    0 => Values { owner, values }, 1 => Complete { owner, snapshot, inventory },
    2 => Retain { session, snapshot, next }, 3 => Dropped { owner },
});

impl SnapshotStore {
    /// Records all changes from now on. Returns the records of the current state.
    pub fn keep_records(&mut self) -> Vec<SnapshotRecord> {
        self.records = Some(Vec::new());
        let mut all = Vec::new();
        for (&owner, kept) in &self.owners {
            let mut names: Vec<_> = kept.values.keys().copied().collect();
            names.sort_unstable();
            let values = names.iter().filter_map(|name| kept.values.get(name));
            let parts = parts(values.map(|value| value.saved.clone())).into_iter();
            all.extend(parts.map(|part| SnapshotRecord::Values { owner, values: part.values }));
            all.extend(kept.snapshots.iter().map(|(number, contents)| {
                let inventory = contents.inventory.clone();
                SnapshotRecord::Complete { owner, snapshot: *number, inventory }
            }));
        }
        all
    }

    /// Stops recording changes.
    pub fn leave_records(&mut self) {
        self.records = None;
    }

    /// Returns the changes since the last call.
    pub fn take_records(&mut self) -> Vec<SnapshotRecord> {
        self.records.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn record(&mut self, record: impl FnOnce() -> SnapshotRecord) {
        if let Some(records) = &mut self.records {
            records.push(record());
        }
    }

    /// Restores the store from records, whose values are mapped files. Incomplete snapshots are
    /// dropped. Returns the number of snapshots.
    pub fn adopt(&mut self, records: Vec<SnapshotRecord>) -> usize {
        for record in records {
            match record {
                SnapshotRecord::Values { owner, values } => {
                    let mapped = |saved| StoredValue { saved, place: ValuePlace::Mapped };
                    self.add(owner, values.into_iter().map(mapped));
                }
                SnapshotRecord::Complete { owner, snapshot, inventory } => {
                    // A snapshot without all its values is dropped.
                    let _ = self.complete(owner, snapshot, inventory);
                }
                SnapshotRecord::Retain { session, snapshot, next } => {
                    self.retain(session, snapshot, next, &[]);
                }
                SnapshotRecord::Dropped { owner } => drop(self.drop_owner(owner)),
            }
        }
        let owners: Vec<Owner> = self.owners.keys().copied().collect();
        for owner in owners {
            self.drop_loose(owner);
        }
        self.renew();
        self.owners.values().map(|kept| kept.snapshots.len()).sum()
    }

    /// Drops the values of a slot that are in no snapshot.
    pub fn drop_loose(&mut self, owner: Owner) {
        let Some(kept) = self.owners.get_mut(&owner) else { return };
        let loose = std::mem::take(&mut kept.loose);
        kept.remove(&loose).for_each(|value| self.amounts.remove(&value));
        if kept.snapshots.is_empty() {
            self.owners.remove(&owner);
        }
    }
}
