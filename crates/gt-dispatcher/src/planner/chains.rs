//! Exchanges among many slots, from neighbour to neighbour ([`gt_ir::chain`]).

use gt_ir::chain::{self, Combined};
use gt_ir::exchange::{Hop, KeptBlock, Parts};
use gt_ir::layout::{Layout, Mesh, Placement};
use gt_ir::redistribute::SlotParts;
use gt_ir::sharding::Block;
use gt_ir::{Meta, SlotId};

use super::redistribution::gathered_axis;

/// Returns the slots' parts of a chain after which partial values along a mesh axis are combined.
pub fn of_sums(from: &Layout, to: &Layout, meta: Meta, mesh_axis: usize) -> Vec<SlotParts> {
    along_lines(&from.mesh, mesh_axis, |ranks, slots| {
        // The summands of a line have the same block.
        let input = from.block(meta.shape, ranks[0]);
        let element = meta.dtype.size();
        let blocks: Vec<Combined> = match to.placements[mesh_axis] {
            Placement::Shard { .. } => {
                let needs: Vec<Block> =
                    ranks.iter().map(|&rank| to.block(meta.shape, rank).within(&input)).collect();
                let bytes = (input.shape.numel() * element) as u64;
                let pieces = match chain::is_returned_by_parts(ranks.len(), bytes) {
                    true => needs.iter().copied().filter(|need| need.shape.numel() > 0).collect(),
                    false => chain::pieces(input.shape, element),
                };
                pieces.into_iter().map(|block| scattered(block, &needs)).collect()
            }
            Placement::Replicate | Placement::Partial(_) => {
                let pieces = chain::pieces(input.shape, element).into_iter();
                pieces.map(|block| Combined::for_all(block, ranks.len())).collect()
            }
        };
        chain::combine(slots, &blocks)
    })
}

/// Returns the parts of all slots of a mesh, of a chain along each line of one of its axes, whose hops
/// are a function of its ranks and their slots.
fn along_lines(
    mesh: &Mesh,
    axis: usize,
    hops: impl Fn(&[usize], &[SlotId]) -> Vec<Vec<Hop>>,
) -> Vec<SlotParts> {
    let of_line = |first: usize| {
        let ranks: Vec<usize> = mesh.line(first, axis).collect();
        let slots: Vec<SlotId> = ranks.iter().map(|&rank| mesh.slots[rank]).collect();
        let hops = hops(&ranks, &slots);
        let part = |((rank, slot), hops)| part(slot, true, Some(rank), hops);
        ranks.into_iter().zip(slots).zip(hops).map(part).collect::<Vec<_>>()
    };
    let is_first = |rank: &usize| mesh.coordinate(*rank, axis) == 0;
    (0..mesh.size()).filter(is_first).flat_map(of_line).collect()
}

/// Returns a block of a sum of which each slot keeps what it needs.
fn scattered(block: Block, needs: &[Block]) -> Combined {
    let kept = |need: &Block| {
        let common = block.intersect(need)?;
        let part = (common != block).then(|| common.within(&block));
        Some(KeptBlock { part, at: common.within(need) })
    };
    Combined { block, kept: needs.iter().map(kept).collect() }
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
    along_lines(&from.mesh, axis, |ranks, slots| {
        let need = to.block(meta.shape, ranks[0]);
        let of = |&rank: &usize| {
            let own = from.block(meta.shape, rank);
            (own.shape.numel() > 0).then(|| (Block::whole(own.shape), own.within(&need)))
        };
        let blocks: Vec<_> = ranks.iter().map(of).collect();
        match from.placements[axis].shard_axis() {
            Some(along) if chain::is_joined((need.shape.numel() * meta.dtype.size()) as u64) => {
                let owns: Vec<_> = blocks.iter().map(|of| of.map(|(own, _)| own)).collect();
                chain::join(slots, &owns, along, Block::whole(need.shape))
            }
            _ => chain::gather(slots, &blocks),
        }
    })
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
