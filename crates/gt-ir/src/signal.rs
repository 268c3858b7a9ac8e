//! The placement that a configuration assigns to a signal's scope.

use std::fmt;

use crate::record;
use crate::wire::{DecodeError, Decoded, Record, Sink, Source};

/// A placement: a mesh of workers, and the tensor axis sharded over each mesh axis.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Shard {
    /// Worker numbers in the mesh's row-major order; `None` means all workers.
    pub workers: Option<Vec<u32>>,
    /// One or two axes of workers.
    pub mesh: Vec<MeshAxis>,
}

/// One axis of a mesh, and the tensor axis sharded over it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MeshAxis {
    /// Its name in a configuration; empty for the only axis.
    pub name: String,
    /// Its length; 0 for the number of workers.
    pub length: u32,
    /// The tensor's axis; negative ones count from the back. `None` to replicate.
    pub axis: Option<i64>,
}

record!(struct MeshAxis { name, length, axis });

impl Record for Shard {
    fn write<S: Sink>(&self, to: &mut S) {
        self.workers.write(to);
        self.mesh.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Shard> {
        let shard = Shard { workers: Record::read(from)?, mesh: Record::read(from)? };
        // The planner supports meshes of one or two axes.
        match shard.mesh.len() {
            1 | 2 => Ok(shard),
            axes => Err(DecodeError::BadCode { what: "a mesh", code: axes as u64 }),
        }
    }
}

impl Shard {
    /// Returns a mesh of all `workers` in one row, with tensors sharded along `axis`, or
    /// replicated.
    pub fn row(workers: Option<Vec<u32>>, axis: Option<i64>) -> Shard {
        Shard { workers, mesh: vec![MeshAxis { name: String::new(), length: 0, axis }] }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, axis) in self.mesh.iter().enumerate() {
            if index > 0 {
                f.write_str(" x ")?;
            }
            match axis.axis {
                Some(axis) => write!(f, "Shard({axis})")?,
                None => f.write_str("Replicate")?,
            }
        }
        match &self.workers {
            Some(workers) => write!(f, " on workers {workers:?}"),
            None => f.write_str(" on all workers"),
        }
    }
}
