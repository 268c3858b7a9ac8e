//! The catalogue by slot: memory in use, and the effect of losing a slot.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::message::Failure;
use gt_ir::{SlotId, TensorId, WorkerCommand};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::{Catalogue, TensorCopy, TensorState};
use crate::planner::meshes::Meshes;
use crate::planner::streams::Streams;

impl Catalogue {
    /// The bytes of this session's tensors on each slot.
    pub fn memory(&self) -> Vec<(SlotId, u64)> {
        let mut held: FxHashMap<SlotId, u64> = FxHashMap::default();
        // The order of a sum does not matter, and the result is sorted.
        #[allow(clippy::iter_over_hash_type, reason = "sums are the same in any order")]
        for state in self.tensors.values() {
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

    /// The slots that hold no tensor.
    pub fn empty_slots(&self) -> Vec<SlotId> {
        let used: FxHashSet<SlotId> = self.memory().into_iter().map(|(slot, _)| slot).collect();
        self.slots.every().filter(|slot| !used.contains(slot)).collect()
    }

    /// All tensors fail.
    pub fn fail_all(&mut self, failure: &Arc<Failure>) {
        let ids: Vec<TensorId> = self.tensors.keys().copied().collect();
        ids.into_iter().for_each(|id| self.fail(id, Arc::clone(failure)));
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
        let mut ids: Vec<TensorId> = self.tensors.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(TensorState::Placed(placed)) = self.tensors.get_mut(&id) else { continue };
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
            gone.iter().for_each(|copy| self.forget_made(copy));
        }
    }
}

/// What remains of a copy without one of its slots: if it is replicated, the replica on one other
/// slot. All other parts are freed.
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
