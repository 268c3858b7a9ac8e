//! A worker's statistics.

use std::time::Duration;

use crate::failure::Failure;
use crate::gpu::GpuStatus;
use crate::record;

/// A worker's statistics since it started.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkerStats {
    pub name: String,
    pub engine: String,
    pub operations_total: u64,
    pub operations_failed: u64,
    /// The number of all operations that compiled programs ran.
    pub operations_compiled: u64,
    /// Instructions that were skipped, as no needed command read their results.
    pub operations_skipped: u64,
    /// Tensors held, and their bytes.
    pub tensors: u64,
    pub bytes: u64,
    /// The most bytes held at once.
    pub bytes_peak: u64,
    /// Spilled tensors, and their bytes.
    pub spilled_tensors: u64,
    pub spilled_bytes: u64,
    /// The bytes of the snapshots that are stored on this worker, in memory and on disk.
    pub snapshot_bytes: u64,
    pub snapshot_disk_bytes: u64,
    /// The number of all operations that were in iterations of hot paths.
    pub hot_instructions: u64,
    /// Hot paths defined so far.
    pub unique_sequences: u64,
    /// Hot paths defined now.
    pub hot_sequences: u64,
    /// The programs that have run the most operations.
    pub top_sequences: Vec<Sequence>,
    pub compilation: CompilationStats,
    /// The engine's most recent compilations; empty for the native engine.
    pub compilations: Vec<Compilation>,
    /// The failures of the requesting session, with the tensors and steps that each has affected.
    pub failed: Vec<FailureSummary>,
    /// The worker's GPU, if NVML knows one.
    pub gpu: Option<GpuStatus>,
    /// The bytes that its tensors may take in memory; `None` without a limit.
    pub memory_limit: Option<u64>,
}

record!(struct WorkerStats {
    name,
    engine,
    operations_total,
    operations_failed,
    operations_compiled,
    operations_skipped,
    tensors,
    bytes,
    bytes_peak,
    spilled_tensors,
    spilled_bytes,
    snapshot_bytes,
    snapshot_disk_bytes,
    hot_instructions,
    unique_sequences,
    hot_sequences,
    top_sequences,
    compilation,
    compilations,
    failed,
    gpu,
    memory_limit,
});

/// A failure, with the number of a session's tensors and steps that it has affected.
#[derive(Clone, PartialEq, Debug)]
pub struct FailureSummary {
    pub failure: Failure,
    /// The number of existing tensors that have no value because of it.
    pub tensors: u64,
    /// The number of steps that were undone because of it.
    pub steps: u64,
}

record!(struct FailureSummary { failure, tensors, steps });

/// A repeated sequence of operations.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Sequence {
    /// The first of its operations, by name.
    pub operations: String,
    pub length: u64,
    pub repetitions: u64,
    /// The total time of all repetitions.
    pub time: Duration,
}

record!(struct Sequence { operations, length, repetitions, time });

/// Code that an engine has compiled.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Compilation {
    /// The operations that it computes.
    pub operations: String,
    pub reason: String,
    /// How long the compilation took.
    pub time: Duration,
}

record!(struct Compilation { operations, reason, time });

/// Statistics of a worker's program cache.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct CompilationStats {
    /// Programs in the cache.
    pub cache_size: u64,
    /// Lookups and launches that found a program.
    pub cache_hits: u64,
    /// Lookups that did not.
    pub cache_misses: u64,
    /// Compiled programs whose results were compared and equal those of their operations.
    pub checked: u64,
    /// Programs that could not be compiled, or whose results differed.
    pub failures: u64,
    pub compile_time: Duration,
    /// The estimated time saved by compiled programs.
    pub time_saved: Duration,
}

record!(struct CompilationStats {
    cache_size,
    cache_hits,
    cache_misses,
    checked,
    failures,
    compile_time,
    time_saved,
});
