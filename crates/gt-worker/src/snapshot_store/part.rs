//! Values in messages of a moderate size.

use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue};

/// The values in one message, beyond which others follow in another one.
pub(crate) const MESSAGE: usize = 4 << 20;
/// The most values in one message.
pub(crate) const VALUES: usize = 1 << 10;

/// The values of one message.
#[derive(Default)]
pub(super) struct ValuesPart {
    pub values: Vec<SavedValue>,
    bytes: usize,
}

impl ValuesPart {
    /// Whether another value does not make it too long.
    pub fn has_room(&self, value: &SavedValue) -> bool {
        let bytes = self.bytes + value.bytes() as usize;
        self.values.is_empty() || bytes <= MESSAGE && self.values.len() < VALUES
    }

    pub fn add(&mut self, value: SavedValue) {
        self.bytes += value.bytes() as usize;
        self.values.push(value);
    }

    pub fn backup(self, owner: Owner, snapshot: u64, inventory: Option<Inventory>) -> Backup {
        Backup { owner, snapshot, sender: None, values: self.values, inventory }
    }
}

/// Divides values into parts of a moderate size, of which there is one at least.
pub(super) fn parts(values: impl Iterator<Item = SavedValue>) -> Vec<ValuesPart> {
    let (mut all, mut part) = (Vec::new(), ValuesPart::default());
    for value in values {
        if !part.has_room(&value) {
            all.push(std::mem::take(&mut part));
        }
        part.add(value);
    }
    all.push(part);
    all
}

/// Divides values into messages; the last has the inventory.
pub(super) fn divide(
    owner: Owner,
    snapshot: u64,
    values: impl Iterator<Item = SavedValue>,
    inventory: Inventory,
) -> Vec<Backup> {
    let mut parts = parts(values);
    let last = parts.pop().map(|part| part.backup(owner, snapshot, Some(inventory)));
    let others = parts.into_iter().map(|part| part.backup(owner, snapshot, None));
    others.chain(last).collect()
}
