//! Exchanges among many slots, from neighbour to neighbour ([`gt_ir::chain`]).

use gt_ir::chain::{self, Combined};
use gt_ir::exchange::{Hop, Parts};
use gt_ir::layout::{Layout, Placement};
use gt_ir::redistribute::SlotParts;
use gt_ir::sharding::Block;
use gt_ir::{Meta, SlotId};

use super::redistribution::gathered_axis;

/// Returns the slots' parts of a chain after which partial values along a mesh axis are combined.
pub fn of_sums(from: &Layout, to: &Layout, meta: Meta, mesh_axis: usize) -> Vec<SlotParts> {
    let mesh = &from.mesh;
    let of_line = |first: usize| {
        let ranks: Vec<usize> = mesh.line(first, mesh_axis).collect();
        // The summands of a line have the same block.
        let input = from.block(meta.shape, first);
        let blocks: Vec<Combined> = match to.placements[mesh_axis] {
            Placement::Shard { .. } => {
                let needs = ranks.iter().map(|&rank| to.block(meta.shape, rank)).enumerate();
                let needs = needs.filter(|(_, need)| need.shape.numel() > 0);
                let of = |(index, need): (usize, Block)| Combined {
                    block: need.within(&input),
                    wanted_by: Some(index),
                    at: Block::whole(need.shape),
                };
                needs.map(of).collect()
            }
            Placement::Replicate | Placement::Partial(_) => {
                let pieces = chain::pieces(input.shape, meta.dtype.size()).into_iter();
                pieces.map(|block| Combined { block, wanted_by: None, at: block }).collect()
            }
        };
        let slots: Vec<SlotId> = ranks.iter().map(|&rank| mesh.slots[rank]).collect();
        let hops = chain::combine(&slots, &blocks);
        let part = |((rank, slot), hops)| part(slot, true, Some(rank), hops);
        ranks.into_iter().zip(slots).zip(hops).map(part).collect::<Vec<_>>()
    };
    let is_first = |rank: &usize| mesh.coordinate(*rank, mesh_axis) == 0;
    (0..mesh.size()).filter(is_first).flat_map(of_line).collect()
}

/// Returns the slots' parts of a chain after which each has all blocks of a tensor, which lie on one
/// slot, or on those along one axis of the mesh.
pub fn of_blocks(from: &Layout, to: &Layout, meta: Meta) -> Vec<SlotParts> {
    match gathered_axis(from, to) {
        Some(axis) if from.mesh == to.mesh => gathered(from, to, meta, axis),
        _ => broadcast(from, to, meta),
    }
}

fn gathered(from: &Layout, to: &Layout, meta: Meta, axis: usize) -> Vec<SlotParts> {
    let mesh = &from.mesh;
    let of_line = |first: usize| {
        let ranks: Vec<usize> = mesh.line(first, axis).collect();
        let need = to.block(meta.shape, first);
        let of = |&rank: &usize| {
            let own = from.block(meta.shape, rank);
            (own.shape.numel() > 0).then(|| (Block::whole(own.shape), own.within(&need)))
        };
        let blocks: Vec<_> = ranks.iter().map(of).collect();
        let slots: Vec<SlotId> = ranks.iter().map(|&rank| mesh.slots[rank]).collect();
        let hops = chain::gather(&slots, &blocks);
        let part = |((rank, slot), hops)| part(slot, true, Some(rank), hops);
        ranks.into_iter().zip(slots).zip(hops).map(part).collect::<Vec<_>>()
    };
    let is_first = |rank: &usize| mesh.coordinate(*rank, axis) == 0;
    (0..mesh.size()).filter(is_first).flat_map(of_line).collect()
}

fn broadcast(from: &Layout, to: &Layout, meta: Meta) -> Vec<SlotParts> {
    let root = from.mesh.slots[0];
    let others = to.mesh.slots.iter().copied().filter(|slot| *slot != root);
    let slots: Vec<SlotId> = std::iter::once(root).chain(others).collect();
    let pieces = chain::pieces(meta.shape, meta.dtype.size());
    let hops = chain::broadcast(&slots, &pieces);
    let part = |(slot, hops)| part(slot, slot == root, to.mesh.rank_of(slot), hops);
    slots.iter().copied().zip(hops).map(part).collect()
}

fn part(slot: SlotId, has_input: bool, rank: Option<usize>, hops: Vec<Hop>) -> SlotParts {
    SlotParts { slot, has_input, rank, parts: Parts::default(), hops }
}
