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
    /// In a file without a name that is mapped.
    Disk,
    /// In a mapped file that is there for something else: a tensor that was written away, the worker's
    /// state.
    Mapped,
}

/// What snapshots take up, of which tensors need some.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Medium {
    Memory,
    Disk,
}

impl Medium {
    /// The name of what snapshots give up.
    pub fn name(self) -> &'static str {
        match self {
            Medium::Memory => "memory",
            Medium::Disk => "disk space",
        }
    }

    /// Whether a value takes some of it up, or will soon.
    pub(super) fn has(self, place: ValuePlace) -> bool {
        match self {
            Medium::Memory => matches!(place, ValuePlace::Memory | ValuePlace::Moving),
            Medium::Disk => matches!(place, ValuePlace::Disk | ValuePlace::Moving),
        }
    }
}

/// The bytes of values.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Amounts {
    /// In memory, on their way to the disk or not.
    pub memory: u64,
    pub moving: u64,
    pub disk: u64,
    /// In files of something else.
    pub mapped: u64,
}

impl Amounts {
    /// What they take up of something, or will soon.
    pub fn on(&self, medium: Medium) -> u64 {
        match medium {
            Medium::Memory => self.memory,
            Medium::Disk => self.disk + self.moving,
        }
    }

    /// The amounts that a value counts for.
    fn of(&mut self, value: &Value) -> impl Iterator<Item = &mut u64> {
        let places = [
            (&mut self.memory, Medium::Memory.has(value.place)),
            (&mut self.moving, value.place == ValuePlace::Moving),
            (&mut self.disk, value.place == ValuePlace::Disk),
            (&mut self.mapped, value.place == ValuePlace::Mapped),
        ];
        places.into_iter().filter_map(|(amount, counts)| counts.then_some(amount))
    }

    pub(super) fn add(&mut self, value: &Value) {
        self.of(value).for_each(|amount| *amount += value.saved.bytes());
    }

    pub(super) fn remove(&mut self, value: &Value) {
        self.of(value).for_each(|amount| *amount -= value.saved.bytes());
    }
}

impl Value {
    /// One that is in memory.
    pub fn new(saved: SavedValue) -> Value {
        Value { saved, place: ValuePlace::Memory }
    }
}
