//! Tensors that were moved out of the device's memory, as there was no room.

use gt_ir::stored::OnDisk;
use gt_ir::{Meta, SourceId, TensorData};

/// A tensor that is not in the device's memory, or on its way there or back.
pub(crate) struct Away {
    pub meta: Meta,
    pub line: SourceId,
    pub place: Place,
}

/// Where its values are.
pub(crate) enum Place {
    /// In the host's memory.
    Host(TensorData),
    /// On their way to the disk; still in memory.
    Writing { number: u64, data: TensorData },
    /// In a file of this number.
    Disk { number: u64, file: OnDisk },
    /// On their way back from a file; room is kept for them.
    Reading { number: u64, file: OnDisk },
}

impl Away {
    pub fn bytes(&self) -> u64 {
        self.meta.bytes() as u64
    }

    /// The bytes that it takes up in the device's memory.
    pub fn in_memory(&self) -> u64 {
        match self.place {
            Place::Writing { .. } | Place::Reading { .. } => self.bytes(),
            Place::Host(_) | Place::Disk { .. } => 0,
        }
    }

    /// The bytes that it takes up elsewhere.
    pub fn elsewhere(&self) -> u64 {
        self.bytes() - self.in_memory()
    }
}
