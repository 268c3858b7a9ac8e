//! Spilled tensors: moved out of the device's memory to make room.

use gt_ir::stored::OnDisk;
use gt_ir::{Meta, SourceId, TensorData};

/// A spilled tensor, or one that is being spilled or unspilled.
pub(crate) struct Away {
    pub meta: Meta,
    pub line: SourceId,
    pub place: SpillPlace,
}

/// Where its values are.
pub(crate) enum SpillPlace {
    /// In the host's memory.
    Host(TensorData),
    /// Being written to disk; still in memory.
    Writing { number: u64, data: TensorData },
    /// In a file of this number.
    Disk { number: u64, file: OnDisk },
    /// Being read from a file; memory is reserved for them.
    Reading { number: u64, file: OnDisk },
}

impl Away {
    pub fn bytes(&self) -> u64 {
        self.meta.bytes() as u64
    }

    /// Returns the bytes that it takes in the device's memory.
    pub fn in_memory(&self) -> u64 {
        match self.place {
            SpillPlace::Writing { .. } | SpillPlace::Reading { .. } => self.bytes(),
            SpillPlace::Host(_) | SpillPlace::Disk { .. } => 0,
        }
    }

    /// Returns the bytes that it takes elsewhere.
    pub fn elsewhere(&self) -> u64 {
        self.bytes() - self.in_memory()
    }
}
