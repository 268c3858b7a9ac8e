//! Values in messages of a moderate size.

use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue};

use super::values::bytes_of;

/// The values in one message, beyond which others follow in another one.
pub(super) const MESSAGE: usize = 4 << 20;
/// The most values in one message.
pub(super) const VALUES: usize = 1 << 10;

/// The values of one message.
#[derive(Default)]
pub(super) struct Part {
    values: Vec<SavedValue>,
    bytes: usize,
}

impl Part {
    /// Whether another value does not make it too long.
    pub fn has_room(&self, value: &SavedValue) -> bool {
        let bytes = self.bytes + bytes_of(value) as usize;
        self.values.is_empty() || bytes <= MESSAGE && self.values.len() < VALUES
    }

    pub fn add(&mut self, value: SavedValue) {
        self.bytes += bytes_of(&value) as usize;
        self.values.push(value);
    }

    pub fn backup(self, owner: Owner, snapshot: u64, inventory: Option<Inventory>) -> Backup {
        Backup { owner, snapshot, sender: None, values: self.values, inventory }
    }
}

/// Divides values into messages of a moderate size; the last has the inventory.
pub(super) fn divide(
    owner: Owner,
    snapshot: u64,
    values: impl Iterator<Item = SavedValue>,
    inventory: Inventory,
) -> Vec<Backup> {
    let (mut all, mut part) = (Vec::new(), Part::default());
    for value in values {
        if !part.has_room(&value) {
            all.push(std::mem::take(&mut part).backup(owner, snapshot, None));
        }
        part.add(value);
    }
    all.push(part.backup(owner, snapshot, Some(inventory)));
    all
}
