//! The catalogue by slot: memory in use, and the effect of losing a slot.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::message::Failure;
use gt_ir::{SlotId, TensorId, WorkerCommand};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Catalogue, TensorCopy, TensorState, TensorTable};
use crate::pages::Page;
use crate::planner::meshes::Meshes;
use crate::planner::streams::Streams;

/// The number of copies on each slot, and the tensors at the time of counting.
#[derive(Clone, Default)]
pub(super) struct CopyCounts {
    tensors: TensorTable,
    copies: Vec<u64>,
}

impl CopyCounts {
    /// Returns the number of copies of these tensors on each slot.
    fn of(&self, tensors: &TensorTable) -> Vec<u64> {
        let mut counts = self.copies.clone();
        let mut count = |page: &Page<TensorState>, is_now: bool| {
            let placed = page.items().iter().filter_map(|state| match state {
                TensorState::Placed(placed) => Some(placed),
                TensorState::Failed(_) => None,
            });
            let copies = placed.flat_map(|placed| &placed.copies);
            for slot in copies.flat_map(|copy| &copy.layout.mesh.slots) {
                let slot = slot.0 as usize;
                if slot >= counts.len() {
                    counts.resize(slot + 1, 0);
                }
                counts[slot] = if is_now { counts[slot] + 1 } else { counts[slot] - 1 };
            }
        };
        for (_, was, is) in tensors.differences(&self.tensors) {
            // Current copies are added first, so that no count is negative in between.
            is.into_iter().for_each(|page| count(page, true));
            was.into_iter().for_each(|page| count(page, false));
        }
        counts
    }
}

impl Catalogue {
    /// Returns the bytes of this session's tensors on each slot.
    pub fn memory(&self) -> Vec<(SlotId, u64)> {
        let mut held: FxHashMap<SlotId, u64> = FxHashMap::default();
        for (_, state) in self.tensors.iter() {
            let TensorState::Placed(placed) = state else { continue };
            for copy in &placed.copies {
                for (rank, &slot) in copy.layout.mesh.slots.iter().enumerate() {
                    let part = copy.layout.block(placed.meta.shape, rank).shape.numel();
                    *held.entry(slot).or_default() += (part * placed.meta.dtype.size()) as u64;
                }
            }
        }
        let mut held: Vec<_> = held.into_iter().collect();
        held.sort_unstable();
        held
    }

    /// Returns the slots that hold no tensor.
    pub fn empty_slots(&self) -> Vec<SlotId> {
        let counts = self.counted.of(&self.tensors);
        let count = |slot: SlotId| counts.get(slot.0 as usize).copied().unwrap_or(0);
        self.slots.all().filter(|slot| count(*slot) == 0).collect()
    }

    /// Counts the copies on each slot, so that [`Catalogue::empty_slots`] visits only what has
    /// changed since.
    pub fn count_copies(&mut self) {
        let copies = self.counted.of(&self.tensors);
        self.counted = CopyCounts { tensors: self.tensors.clone(), copies };
    }

    /// Fails all tensors.
    pub fn fail_all(&mut self, failure: &Arc<Failure>) {
        let ids = self.tensors.numbers().into_iter().map(TensorId);
        ids.for_each(|id| self.fail(id, Arc::clone(failure)));
    }

    /// Removes a lost slot's parts. Tensors without a complete copy elsewhere fail.
    pub fn lose_slot(
        &mut self,
        slot: SlotId,
        failure: &Arc<Failure>,
        meshes: &mut Meshes,
        streams: &mut Streams,
    ) {
        self.changes += 1;
        for id in self.tensors.numbers() {
            let Some(TensorState::Placed(placed)) = self.tensors.get_mut(id) else { continue };
            let mut left: SmallVec<[TensorCopy; 1]> = SmallVec::new();
            let mut gone: SmallVec<[TensorCopy; 1]> = SmallVec::new();
            for copy in placed.copies.drain(..) {
                if copy.layout.mesh.rank_of(slot).is_none() {
                    left.push(copy);
                } else {
                    left.extend(survivor(&copy, slot, meshes, streams));
                    gone.push(copy);
                }
            }
            if left.is_empty() {
                self.tensors.insert(id, TensorState::Failed(Arc::clone(failure)));
            } else {
                placed.copies = left;
            }
            gone.iter().for_each(|copy| self.forget_extra(copy));
        }
    }
}

/// Returns what remains of a copy without one of its slots: if it is replicated, the replica on one
/// other slot. All other parts are freed.
fn survivor(
    copy: &TensorCopy,
    lost: SlotId,
    meshes: &mut Meshes,
    streams: &mut Streams,
) -> Option<TensorCopy> {
    let others = || copy.layout.mesh.slots.iter().copied().filter(|&slot| slot != lost);
    let keeper = copy.layout.is_replicated().then(|| others().next()).flatten();
    for slot in others().filter(|&slot| Some(slot) != keeper) {
        streams.push(slot, WorkerCommand::Free(copy.id));
    }
    let mesh = meshes.single(keeper?);
    Some(TensorCopy { layout: Arc::new(Layout::replicated(&mesh)), id: copy.id, made: 0 })
}
