//! What all lanes of a worker hold.

use rustc_hash::FxHashMap;

use super::published::PublishedMemory;

/// The tensors and bytes held in all lanes of a worker.
#[derive(Default, Debug)]
pub(crate) struct HeldTotals {
    pub tensors: u64,
    pub bytes: u64,
    pub bytes_peak: u64,
    /// Of spilled tensors.
    pub spilled_tensors: u64,
    pub spilled_bytes: u64,
    /// Of these, the bytes on disk.
    pub disk_bytes: u64,
    /// The bytes that will be free when a file is written, by its number.
    pub writing: FxHashMap<u64, u64>,
    /// Bytes that are granted to commands that have waited for them, or that paused calls have.
    pub granted: u64,
    /// The bytes of snapshots, if they are in the same memory.
    pub snapshots: u64,
    /// Of these, the bytes that are being written to disk.
    pub spilling_snapshots: u64,
    /// Memory that publications share with lanes, by number, and the last number.
    pub(super) published: FxHashMap<u64, PublishedMemory>,
    pub(super) last_published: u64,
    /// Files that are no longer needed.
    pub discarded: Vec<u64>,
    /// The number of releases of bytes.
    pub releases: u64,
}

impl HeldTotals {
    pub fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.bytes_peak = self.bytes_peak.max(self.bytes);
    }

    pub fn remove(&mut self, bytes: u64) {
        self.bytes -= bytes;
        self.releases += 1;
    }
}
