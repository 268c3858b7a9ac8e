//! What the signals of a session ask for, on the workers that there are.

use std::sync::Arc;

use gt_ir::signal::Shard;
use gt_ir::{Meta, WorkerId};
use smallvec::SmallVec;

use super::fabrics::Fabrics;
use super::layout::{Layout, Mesh, Placement};
use super::meshes::Meshes;

/// The workers that there are: by the number that configurations use.
#[derive(Clone, Default)]
pub struct Cluster {
    pub workers: Vec<(u32, WorkerId)>,
    pub fabrics: Fabrics,
    /// Grows with every change.
    pub version: u64,
}

/// A signal, and what it comes to on the present cluster.
pub struct Scope {
    name: String,
    shard: Option<Shard>,
    resolved: Option<(u64, Result<Option<Wanted>, String>)>,
}

/// Where a scope wants tensors: a mesh, and the tensor axis for each of its axes.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub mesh: Arc<Mesh>,
    axes: SmallVec<[Option<i64>; 2]>,
}

impl Wanted {
    pub fn new(mesh: Arc<Mesh>, axes: &[Option<i64>]) -> Wanted {
        Wanted { mesh, axes: SmallVec::from_slice(axes) }
    }

    /// The layout of a tensor. An axis that it has not, or that has one element only, is not cut;
    /// nor is any for a single worker.
    pub fn layout(&self, meta: Meta) -> Layout {
        let rank = meta.shape.rank() as i64;
        let mut cut: SmallVec<[usize; 2]> = SmallVec::new();
        let placements = self.axes.iter().zip(&self.mesh.dims).map(|(axis, &parts)| {
            let axis = axis.map(|axis| if axis < 0 { axis + rank } else { axis });
            match axis {
                Some(axis) if (0..rank).contains(&axis) => {
                    let axis = axis as usize;
                    if parts == 1 || meta.shape[axis] <= 1 || cut.contains(&axis) {
                        return Placement::Replicate;
                    }
                    cut.push(axis);
                    Placement::balanced(axis, meta.shape[axis], parts)
                }
                _ => Placement::Replicate,
            }
        });
        let placements = placements.collect();
        Layout { mesh: Arc::clone(&self.mesh), placements }
    }
}

impl Scope {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn new(name: String, shard: Option<Shard>) -> Scope {
        Scope { name, shard, resolved: None }
    }

    /// What the scope comes to. On a single worker there is nothing to place: `None`.
    ///
    /// # Errors
    /// It names workers that do not exist, or the workers do not fill its mesh.
    pub fn resolve(
        &mut self,
        cluster: &Cluster,
        meshes: &mut Meshes,
    ) -> Result<Option<&Wanted>, &str> {
        if self.resolved.as_ref().is_none_or(|(version, _)| *version != cluster.version) {
            let wanted = match &self.shard {
                Some(shard) if cluster.workers.len() > 1 => {
                    place(&self.name, shard, cluster, meshes).map(Some)
                }
                _ => Ok(None),
            };
            self.resolved = Some((cluster.version, wanted));
        }
        match &self.resolved.as_ref().expect("set above").1 {
            Ok(wanted) => Ok(wanted.as_ref()),
            Err(reason) => Err(reason),
        }
    }
}

fn place(
    name: &str,
    shard: &Shard,
    cluster: &Cluster,
    meshes: &mut Meshes,
) -> Result<Wanted, String> {
    let mut all: Vec<(u32, WorkerId)> = cluster.workers.clone();
    all.sort_unstable();
    let exist = || {
        let numbers: Vec<String> = all.iter().map(|(number, _)| number.to_string()).collect();
        numbers.join(", ")
    };
    let workers: Vec<WorkerId> = match &shard.workers {
        None => all.iter().map(|(_, worker)| *worker).collect(),
        Some(numbers) => numbers
            .iter()
            .map(|number| {
                let found = all.iter().find(|(other, _)| other == number);
                found.map(|(_, worker)| *worker).ok_or_else(|| {
                    format!(
                        "signal '{name}' names worker {number}, but the workers are {}\n  hint: start more workers, or use `workers: null` for all",
                        exist()
                    )
                })
            })
            .collect::<Result<_, _>>()?,
    };
    if let Some(twice) = (1..workers.len()).find(|&at| workers[..at].contains(&workers[at])) {
        let number = shard.workers.as_ref().map_or(0, |numbers| numbers[twice]);
        return Err(format!("signal '{name}' names worker {number} twice"));
    }
    let given: usize = shard.mesh.iter().map(|axis| axis.length.max(1) as usize).product();
    let open = shard.mesh.iter().filter(|axis| axis.length == 0).count();
    let fits = if open == 0 {
        workers.len() >= given
    } else {
        workers.len() >= given && workers.len().is_multiple_of(given)
    };
    if !fits {
        return Err(format!(
            "signal '{name}' needs a mesh of {given} workers, and has {}: the workers are {}",
            workers.len(),
            exist()
        ));
    }
    let rest = if open > 0 { workers.len() / given } else { 1 };
    let mut open = true;
    let dims: Vec<usize> = shard
        .mesh
        .iter()
        .map(|axis| match axis.length {
            0 if std::mem::take(&mut open) => rest,
            0 => 1,
            length => length as usize,
        })
        .collect();
    let count = dims.iter().product();
    let mesh = meshes.get(&dims, &workers[..count]);
    let axes: Vec<Option<i64>> = shard.mesh.iter().map(|axis| axis.axis).collect();
    Ok(Wanted::new(mesh, &axes))
}
