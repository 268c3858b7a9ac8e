//! What is kept of a slot: values, and which of them are in which snapshot.

use std::collections::BTreeMap;

use gt_ir::names::Names;
use gt_ir::snapshot::{Inventory, Unkept};
use gt_ir::{TensorId, WorkerId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::values::Value;

/// What is kept of a slot.
#[derive(Default)]
pub(super) struct Kept {
    pub values: FxHashMap<TensorId, Value>,
    /// Those whose tensors have other values by now.
    pub outdated: FxHashSet<TensorId>,
    /// The values that are in no snapshot yet.
    pub loose: Names,
    /// The snapshots that are complete here.
    pub snapshots: BTreeMap<u64, Contents>,
    /// Who has a copy, the tensors that it has, and the snapshots that it was given.
    pub copy: Option<(Option<WorkerId>, Names, Vec<u64>)>,
}

/// What is in a snapshot.
#[derive(Default)]
pub(super) struct Contents {
    pub inventory: Inventory,
    /// The bytes of its values.
    pub bytes: u64,
}

impl Kept {
    /// Adds a value; returns the one before.
    pub fn add(&mut self, value: Value) -> Option<Value> {
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

    /// Takes the values of these tensors out.
    pub fn remove(&mut self, names: &Names) -> impl Iterator<Item = Value> {
        names.iter().filter_map(|name| self.values.remove(&name))
    }

    /// Completes a snapshot, of which all values are here. Only what differs from the one before is
    /// looked at.
    ///
    /// # Errors
    /// A value is missing.
    pub fn complete(&mut self, number: u64, inventory: Inventory) -> Result<u64, Unkept> {
        let nothing = Contents::default();
        let before = self.snapshots.values().next_back().unwrap_or(&nothing);
        let (names, known) = (&inventory.names, &before.inventory.names);
        let bytes = |name: TensorId| self.values.get(&name).map(|value| value.saved.bytes());
        let gone: u64 = known.without(names).iter().filter_map(bytes).sum();
        let fresh: Option<u64> = names.without(known).iter().map(bytes).sum();
        let bytes = before.bytes - gone + fresh.ok_or(Unkept::Incomplete)?;
        if !self.loose.is_empty() {
            self.loose = self.loose.without(names);
        }
        self.snapshots.insert(number, Contents { inventory, bytes });
        Ok(bytes)
    }
}
