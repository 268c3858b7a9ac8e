//! The values of snapshots, and their bytes by location.

use gt_ir::snapshot::SavedValue;

/// A value, and where it is.
#[derive(Clone)]
pub(crate) struct StoredValue {
    pub saved: SavedValue,
    pub place: ValuePlace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValuePlace {
    Memory,
    /// In memory, while it is written to disk.
    Moving,
    /// In a file without a name that is mapped.
    Disk,
    /// In a mapped file that exists for another purpose: a spilled tensor, or the worker's state.
    Mapped,
}

/// A resource that snapshots take, and that tensors need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Medium {
    Memory,
    Disk,
}

impl Medium {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Medium::Memory => "memory",
            Medium::Disk => "disk space",
        }
    }

    /// Returns whether a value takes some of it, or will soon.
    pub fn has(self, place: ValuePlace) -> bool {
        match self {
            Medium::Memory => matches!(place, ValuePlace::Memory | ValuePlace::Moving),
            Medium::Disk => matches!(place, ValuePlace::Disk | ValuePlace::Moving),
        }
    }
}

/// The bytes of values.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Amounts {
    /// In memory, being written to disk or not.
    pub memory: u64,
    pub moving: u64,
    pub disk: u64,
    /// In files that exist for another purpose.
    pub mapped: u64,
}

impl Amounts {
    /// Returns the bytes that they take of a resource, or will soon.
    pub fn on(&self, medium: Medium) -> u64 {
        match medium {
            Medium::Memory => self.memory,
            Medium::Disk => self.disk + self.moving,
        }
    }

    /// Returns the amounts that a value counts for.
    fn of(&mut self, value: &StoredValue) -> impl Iterator<Item = &mut u64> {
        let places = [
            (&mut self.memory, Medium::Memory.has(value.place)),
            (&mut self.moving, value.place == ValuePlace::Moving),
            (&mut self.disk, value.place == ValuePlace::Disk),
            (&mut self.mapped, value.place == ValuePlace::Mapped),
        ];
        places.into_iter().filter_map(|(amount, counts)| counts.then_some(amount))
    }

    pub fn add(&mut self, value: &StoredValue) {
        self.of(value).for_each(|amount| *amount += value.saved.bytes());
    }

    pub fn remove(&mut self, value: &StoredValue) {
        self.of(value).for_each(|amount| *amount -= value.saved.bytes());
    }
}

impl StoredValue {
    /// One that is in memory.
    pub fn new(saved: SavedValue) -> StoredValue {
        StoredValue { saved, place: ValuePlace::Memory }
    }
}
