//! Resolves the placement of a session's signals to a mesh of its slots.

use std::sync::Arc;

use gt_ir::layout::{Layout, Mesh, Placement};
use gt_ir::signal::Shard;
use gt_ir::wire::{Decoded, Record, Sink, Source};
use gt_ir::{Meta, SlotId};
use smallvec::SmallVec;

use super::meshes::Meshes;
use super::slots::Slots;

/// A signal, and its placement resolved for one version of the slots.
#[derive(Clone)]
pub struct SignalScope {
    name: String,
    shard: Option<Shard>,
    resolved: Option<(u64, Result<Option<ResolvedPlacement>, String>)>,
}

/// A resolved placement: a mesh, and the tensor axis that each mesh axis shards.
#[derive(Clone, Debug)]
pub struct ResolvedPlacement {
    pub mesh: Arc<Mesh>,
    axes: SmallVec<[Option<i64>; 2]>,
}

impl ResolvedPlacement {
    /// Creates a placement on a mesh, each of whose axes shards a tensor axis or none.
    pub fn new(mesh: Arc<Mesh>, axes: &[Option<i64>]) -> ResolvedPlacement {
        ResolvedPlacement { mesh, axes: SmallVec::from_slice(axes) }
    }

    /// Returns the layout of a tensor. An axis that does not exist or has at most one element is
    /// not sharded, nor is any over one slot.
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

/// Encoded without its resolved placement.
impl Record for SignalScope {
    fn write<S: Sink>(&self, to: &mut S) {
        self.name.write(to);
        self.shard.write(to);
    }

    fn read(from: &mut Source) -> Decoded<SignalScope> {
        Ok(SignalScope::new(Record::read(from)?, Record::read(from)?))
    }
}

impl SignalScope {
    /// Returns the signal's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it shards tensors over slots.
    pub fn is_sharded(&self) -> bool {
        self.shard.is_some()
    }

    /// Creates the scope of a signal.
    pub fn new(name: String, shard: Option<Shard>) -> SignalScope {
        SignalScope { name, shard, resolved: None }
    }

    /// Returns the scope's placement; `None` if it has none, or there is only one slot.
    ///
    /// # Errors
    /// It names workers that do not exist, or its mesh is not valid or does not fit their number.
    pub fn resolve(
        &mut self,
        slots: &Slots,
        meshes: &mut Meshes,
    ) -> Result<Option<&ResolvedPlacement>, &str> {
        if self.resolved.as_ref().is_none_or(|(version, _)| *version != slots.version()) {
            let wanted = match &self.shard {
                Some(shard) if slots.count() > 1 => {
                    place(&self.name, shard, slots, meshes).map(Some)
                }
                _ => Ok(None),
            };
            self.resolved = Some((slots.version(), wanted));
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
    slots: &Slots,
    meshes: &mut Meshes,
) -> Result<ResolvedPlacement, String> {
    let all: Vec<(u32, SlotId)> = slots.numbers();
    let exist = || {
        let numbers: Vec<String> = all.iter().map(|(number, _)| number.to_string()).collect();
        numbers.join(", ")
    };
    let workers: Vec<SlotId> = match &shard.workers {
        None => all.iter().map(|(_, slot)| *slot).collect(),
        Some(numbers) => numbers
            .iter()
            .map(|number| {
                let found = all.iter().find(|(other, _)| other == number);
                found.map(|(_, slot)| *slot).ok_or_else(|| {
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
    if !(1..=2).contains(&shard.mesh.len()) {
        let count = shard.mesh.len();
        return Err(format!("signal '{name}' has a mesh of {count} axes: it must have one or two"));
    }
    let needed: usize = shard.mesh.iter().map(|axis| axis.length.max(1) as usize).product();
    let open = shard.mesh.iter().filter(|axis| axis.length == 0).count();
    let fits = if open == 0 {
        workers.len() >= needed
    } else {
        workers.len() >= needed && workers.len().is_multiple_of(needed)
    };
    if !fits {
        return Err(format!(
            "signal '{name}' needs a mesh of {needed} workers, and has {}: the workers are {}",
            workers.len(),
            exist()
        ));
    }
    let rest = if open > 0 { workers.len() / needed } else { 1 };
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
    Ok(ResolvedPlacement::new(mesh, &axes))
}
