//! The stored snapshots of a slot: values, and which snapshots they belong to.

use std::collections::BTreeMap;

use gt_ir::names::Names;
use gt_ir::snapshot::{Inventory, Unkept};
use gt_ir::{TensorId, WorkerId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::values::StoredValue;

/// The stored snapshots of a slot.
#[derive(Default)]
pub(super) struct SlotSnapshots {
    pub values: FxHashMap<TensorId, StoredValue>,
    /// Outdated values: their tensors were assigned others since.
    pub outdated: FxHashSet<TensorId>,
    /// Values that are in no snapshot yet.
    pub loose: Names,
    /// The snapshots that are complete here.
    pub snapshots: BTreeMap<u64, SnapshotContents>,
    /// The keeper of a copy, the tensors that it has, and the snapshots that were sent to it.
    pub copy: Option<(Option<WorkerId>, Names, Vec<u64>)>,
}

/// The contents of a snapshot.
#[derive(Default)]
pub(super) struct SnapshotContents {
    pub inventory: Inventory,
    /// The bytes of its values.
    pub bytes: u64,
}

impl SlotSnapshots {
    /// Adds a value; returns the previous one.
    pub fn add(&mut self, value: StoredValue) -> Option<StoredValue> {
        let (name, bytes) = (value.saved.tensor, value.saved.bytes());
        self.outdated.remove(&name);
        let before = self.values.insert(name, value);
        match &before {
            Some(before) => {
                let having =
                    self.snapshots.values_mut().filter(|it| it.inventory.names.contains(name));
                having.for_each(|it| it.bytes = it.bytes - before.saved.bytes() + bytes);
            }
            None => self.loose.insert(name),
        }
        before
    }

    /// Removes and returns the values of these tensors.
    pub fn remove(&mut self, names: &Names) -> impl Iterator<Item = StoredValue> {
        names.iter().filter_map(|name| self.values.remove(&name))
    }

    /// Completes a snapshot whose values are all stored. Only the differences to the previous one
    /// are checked.
    ///
    /// # Errors
    /// A value is missing.
    pub fn complete(&mut self, number: u64, inventory: Inventory) -> Result<u64, Unkept> {
        let nothing = SnapshotContents::default();
        let before = self.snapshots.values().next_back().unwrap_or(&nothing);
        let (names, known) = (&inventory.names, &before.inventory.names);
        let bytes = |name: TensorId| self.values.get(&name).map(|value| value.saved.bytes());
        let gone: u64 = known.without(names).iter().filter_map(bytes).sum();
        let fresh: Option<u64> = names.without(known).iter().map(bytes).sum();
        let bytes = before.bytes - gone + fresh.ok_or(Unkept::Incomplete)?;
        if !self.loose.is_empty() {
            self.loose = self.loose.without(names);
        }
        self.snapshots.insert(number, SnapshotContents { inventory, bytes });
        Ok(bytes)
    }
}
