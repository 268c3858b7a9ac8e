//! The NVIDIA GPU of a worker, as NVIDIA's management library (NVML) describes it.

use crate::record;

/// The GPU that a worker computes on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GpuStatus {
    /// The name of the product, such as `NVIDIA H200`.
    pub name: String,
    /// Its number in `nvidia-smi`; of a MIG instance, that of its GPU.
    pub index: Option<u32>,
    /// `GPU-...`, or `MIG-...` for a MIG instance.
    pub uuid: String,
    /// `None` until the first answer, and while the library does not answer.
    pub reading: Option<GpuReading>,
}

record!(struct GpuStatus { name, index, uuid, reading });

/// The use of a GPU at one moment, by all processes on it. What the library cannot measure is
/// `None`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GpuReading {
    /// The percentage of the last sample period in which a kernel ran.
    pub percent: Option<u8>,
    pub memory: Option<GpuMemory>,
}

record!(struct GpuReading { percent, memory });

/// The bytes of a GPU's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GpuMemory {
    pub used: u64,
    pub total: u64,
}

record!(struct GpuMemory { used, total });
