//! A worker's memory limit, and the folder for spilled tensors.

use std::path::{Path, PathBuf};

use gt_store::place::DataRoots;
use gt_store::spill::SpillFolder;
use gt_worker::Engine;

use super::files::Folders;
use super::system;
use crate::environment;

/// The memory that a worker may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryOptions {
    /// The bytes for tensors; by default nine tenths of the machine's memory.
    pub memory: Option<u64>,
    /// The bytes that may be spilled to disk; by default as many as `memory`, if there is a folder.
    pub spill: Option<u64>,
    pub has_spill_dir: bool,
}

impl MemoryOptions {
    /// From GT_MEMORY, GT_SPILL_DIR and GT_SPILL_LIMIT.
    pub fn from_environment() -> MemoryOptions {
        MemoryOptions {
            memory: environment::size("GT_MEMORY"),
            spill: environment::size("GT_SPILL_LIMIT"),
            has_spill_dir: spill_dir().is_some(),
        }
    }

    /// Returns the bytes that tensors may take; `device` is the memory of a device that has its own.
    pub fn limit(self, device: Option<u64>) -> Option<u64> {
        let most = || device.or_else(system::memory).map(|all| all / 10 * 9);
        self.memory.or_else(most)
    }

    /// The options of a worker on an engine.
    pub fn set<E: Engine>(self, options: gt_worker::Options, engine: &E) -> gt_worker::Options {
        let memory = self.limit(engine.memory());
        let spill = self.spill.or(memory).filter(|_| self.has_spill_dir).unwrap_or(0);
        // A quarter of the host's memory is for the tensors of a device that has its own.
        let host_memory = system::memory().map_or(0, |all| all / 4);
        gt_worker::Options { memory, spill, host_memory, ..options }
    }
}

/// The folder of GT_SPILL_DIR.
pub fn spill_dir() -> Option<PathBuf> {
    let given = std::env::var_os("GT_SPILL_DIR").filter(|given| !given.is_empty());
    given.map(PathBuf::from)
}

/// The folders of embedded workers, which may read and write wherever the process may.
pub fn folders() -> Folders {
    Folders { places: DataRoots::Anywhere, spill: spill_folder(spill_dir().as_deref()) }
}

/// The folders in a fork.
pub fn folders_of_fork(older: &Folders) -> Folders {
    let spill = older.spill.as_ref().and_then(|folder| match folder.of_fork() {
        Ok(folder) => Some(folder),
        Err(error) => {
            tracing::warn!("nothing can be written away in this fork: {error}");
            None
        }
    });
    Folders { places: DataRoots::Anywhere, spill }
}

/// Returns a folder for spilled tensors, or logs a warning why there is none.
pub fn spill_folder(parent: Option<&Path>) -> Option<SpillFolder> {
    let parent = parent?;
    match SpillFolder::create(parent) {
        Ok(folder) => Some(folder),
        Err(error) => {
            tracing::warn!("nothing can be written away to {}: {error}", parent.display());
            None
        }
    }
}
