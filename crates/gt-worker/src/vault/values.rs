//! The values of snapshots, and how many bytes of them are where.

use gt_ir::snapshot::SavedValue;

/// A value, and where it is.
#[derive(Clone)]
pub(super) struct Value {
    pub saved: SavedValue,
    pub place: ValuePlace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ValuePlace {
    Memory,
    /// On its way to the disk.
    Moving,
    /// Mapped.
    Disk,
}

/// The bytes of values.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Amounts {
    /// In memory, on their way to the disk or not.
    pub memory: u64,
    pub moving: u64,
    pub disk: u64,
}

impl Amounts {
    /// The amounts that a value counts for.
    fn of(&mut self, value: &Value) -> impl Iterator<Item = &mut u64> {
        let places = [
            (&mut self.memory, value.place != ValuePlace::Disk),
            (&mut self.moving, value.place == ValuePlace::Moving),
            (&mut self.disk, value.place == ValuePlace::Disk),
        ];
        places.into_iter().filter_map(|(amount, counts)| counts.then_some(amount))
    }

    pub(super) fn add(&mut self, value: &Value) {
        self.of(value).for_each(|amount| *amount += bytes_of(&value.saved));
    }

    pub(super) fn remove(&mut self, value: &Value) {
        self.of(value).for_each(|amount| *amount -= bytes_of(&value.saved));
    }
}

impl Value {
    /// One that is in memory.
    pub fn new(saved: SavedValue) -> Value {
        Value { saved, place: ValuePlace::Memory }
    }
}

/// The bytes of a value.
pub(super) fn bytes_of(value: &SavedValue) -> u64 {
    match &value.result {
        Ok(content) => content.meta().bytes() as u64,
        Err(_) => 0,
    }
}
