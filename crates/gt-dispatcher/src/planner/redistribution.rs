//! Redistribution: the stages that take a tensor from one layout to another, and their cost.

use gt_ir::Meta;
use gt_ir::exchange::Collective;
use gt_ir::layout::{Layout, Placement, balanced_cuts};
use gt_ir::sharding::{Block, Reduction};

/// One step of a redistribution.
#[derive(Clone, PartialEq, Debug)]
pub struct RedistributionStage {
    pub kind: StageKind,
    /// The layout after the stage.
    pub layout: Layout,
    /// The bytes sent between slots.
    pub bytes: u64,
}

impl RedistributionStage {
    /// Returns the cost used to compare strategies: the stage's bytes. A one-step all-reduce, which
    /// sends more to save latency, costs as much as one in two steps.
    fn price(&self) -> u64 {
        match self.kind {
            StageKind::Combine { mesh_axis, collective: Collective::AllReduce, .. } => {
                2 * self.bytes / self.layout.mesh.dims[mesh_axis] as u64
            }
            _ => self.bytes,
        }
    }
}

/// How a stage of a redistribution is carried out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StageKind {
    /// Each slot takes a slice of its part: no communication.
    Slice,
    /// To a partial sum: the first slot along this mesh axis keeps the value, the others get zeros.
    Zeros { mesh_axis: usize },
    /// Blocks are sent to the slots that need them.
    Blocks(Collective),
    /// Partial values along this mesh axis are combined where they are needed.
    Combine { mesh_axis: usize, reduction: Reduction, collective: Collective },
}

/// An all-reduce of up to this many bytes takes one step: each slot sends its values to all others.
const SMALL: u64 = 1 << 10;

fn elements(block: &Block) -> u64 {
    block.shape.numel() as u64
}

/// Returns the bytes sent between slots to get from `from` to `to`, neither of which is partial.
fn block_bytes(from: &Layout, to: &Layout, meta: Meta) -> u64 {
    let same = from.mesh == to.mesh;
    if same && from.placements == to.placements {
        return 0;
    }
    let total: u64 = (0..to.mesh.size())
        .map(|rank| {
            let need = to.block(meta.shape, rank);
            let own = if same { Some(rank) } else { from.mesh.rank_of(to.mesh.slots[rank]) };
            let own = own.and_then(|own| from.block(meta.shape, own).intersect(&need));
            elements(&need) - own.map_or(0, |own| elements(&own))
        })
        .sum();
    total * meta.dtype.size() as u64
}

/// Returns the bytes of all slots' blocks together.
fn held_bytes(layout: &Layout, meta: Meta) -> u64 {
    let shape = meta.shape;
    let total: u64 = (0..layout.mesh.size()).map(|rank| elements(&layout.block(shape, rank))).sum();
    total * meta.dtype.size() as u64
}

/// Returns the bytes sent between slots from one layout to the other; `None` if there is no path.
pub fn cost(from: &Layout, to: &Layout, meta: Meta) -> Option<u64> {
    if from == to {
        return Some(0);
    }
    if !from.is_partial() && !to.is_partial() {
        return Some(block_bytes(from, to, meta));
    }
    Some(stages(from, to, meta)?.iter().map(RedistributionStage::price).sum())
}

/// Returns the [`cost`], taking a tensor on a single slot as if it were sharded evenly: the axis
/// along which it is sharded must depend neither on the remainder nor on which slot holds it.
pub fn even_cost(from: &Layout, to: &Layout, meta: Meta) -> Option<u64> {
    if from.mesh.size() > 1 || from == to || from.is_partial() || to.is_partial() {
        return cost(from, to, meta);
    }
    let cuts = to.placements.iter().zip(&to.mesh.dims);
    let parts: usize = cuts
        .map(|(placement, slots)| if placement.shard_axis().is_some() { *slots } else { 1 })
        .product();
    let is_member = to.mesh.rank_of(from.mesh.slots[0]).is_some();
    let others = to.mesh.size() - usize::from(is_member);
    Some((meta.bytes() * others / parts) as u64)
}

/// Returns a lower bound on the cost of combining a layout's partial values later, into `wanted` if
/// given.
pub fn cost_of_combining(layout: &Layout, wanted: Option<&Layout>, meta: Meta) -> u64 {
    if !layout.is_partial() {
        return 0;
    }
    let mut whole = layout.clone();
    for (index, placement) in whole.placements.iter_mut().enumerate() {
        if placement.is_partial() {
            *placement = match wanted.map(|wanted| &wanted.placements[index]) {
                Some(Placement::Shard { axis, .. })
                    if !layout.placements.iter().any(|p| p.shard_axis() == Some(*axis)) =>
                {
                    let axis = *axis;
                    Placement::balanced(axis, meta.shape[axis], layout.mesh.dims[index])
                }
                _ => Placement::Replicate,
            };
        }
    }
    cost(layout, &whole, meta).unwrap_or(0)
}

/// Returns the stages from one layout to the other; `None` if there is no path (to other partial
/// values).
pub fn stages(from: &Layout, to: &Layout, meta: Meta) -> Option<Vec<RedistributionStage>> {
    let mut stages = Vec::new();
    let mut now = from.clone();
    if now.mesh != to.mesh {
        if to.is_partial() {
            return None;
        }
        leave_partial(&mut now, to, meta, &mut stages);
    } else {
        for mesh_axis in 0..now.placements.len() {
            let Placement::Partial(reduction) = now.placements[mesh_axis] else { continue };
            if now.placements[mesh_axis] == to.placements[mesh_axis] {
                continue;
            }
            combine(&mut now, mesh_axis, reduction, &to.placements[mesh_axis], meta, &mut stages);
        }
    }
    // New partial sums are made from replicated values.
    let mut whole = to.clone();
    for (mesh_axis, placement) in whole.placements.iter_mut().enumerate() {
        match (&now.placements.get(mesh_axis), &placement) {
            (Some(Placement::Partial(has)), Placement::Partial(wants)) if has == wants => {}
            (_, Placement::Partial(Reduction::Sum)) => *placement = Placement::Replicate,
            (_, Placement::Partial(_)) => return None,
            _ => {}
        }
    }
    if now != whole {
        stages.push(blocks_stage(&now, &whole, meta));
        now = whole;
    }
    for mesh_axis in 0..to.placements.len() {
        if now.placements[mesh_axis] != to.placements[mesh_axis] {
            now.placements[mesh_axis] = to.placements[mesh_axis].clone();
            let kind = StageKind::Zeros { mesh_axis };
            stages.push(RedistributionStage { kind, layout: now.clone(), bytes: 0 });
        }
    }
    Some(stages)
}

fn blocks_stage(from: &Layout, to: &Layout, meta: Meta) -> RedistributionStage {
    let bytes = block_bytes(from, to, meta);
    let local = from.mesh == to.mesh
        && (0..to.mesh.size()).all(|rank| {
            let need = to.block(meta.shape, rank);
            let own = from.block(meta.shape, rank).intersect(&need);
            own.is_some_and(|own| own == need) || need.shape.numel() == 0
        });
    let kind = if local {
        StageKind::Slice
    } else {
        StageKind::Blocks(if from.mesh != to.mesh {
            if to.is_replicated() && to.mesh.size() > 1 {
                Collective::Broadcast
            } else {
                Collective::Send
            }
        } else if to.is_replicated() {
            Collective::AllGather
        } else {
            Collective::AllToAll
        })
    };
    RedistributionStage { kind, layout: to.clone(), bytes }
}

/// Combines partial values along a mesh axis: into shards if `target` is `Shard` along a free axis,
/// or else into replicas.
fn combine(
    now: &mut Layout,
    mesh_axis: usize,
    reduction: Reduction,
    target: &Placement,
    meta: Meta,
    stages: &mut Vec<RedistributionStage>,
) {
    let workers = now.mesh.dims[mesh_axis] as u64;
    let held = held_bytes(now, meta);
    let taken: Vec<usize> = now.placements.iter().filter_map(Placement::shard_axis).collect();
    if let Placement::Shard { axis, .. } = target
        && !taken.contains(axis)
    {
        now.placements[mesh_axis] = target.clone();
        let collective = Collective::ReduceScatter;
        let kind = StageKind::Combine { mesh_axis, reduction, collective };
        let bytes = held / workers * (workers - 1);
        return stages.push(RedistributionStage { kind, layout: now.clone(), bytes });
    }
    // The longest free axis that has a part for every slot.
    let longest = (0..meta.shape.rank())
        .filter(|axis| !taken.contains(axis) && meta.shape[*axis] as u64 >= workers)
        .max_by_key(|&axis| (meta.shape[axis], std::cmp::Reverse(axis)));
    match longest {
        Some(axis) if workers > 2 && held / workers > SMALL => {
            let cuts = balanced_cuts(meta.shape[axis], workers as usize);
            now.placements[mesh_axis] = Placement::Shard { axis, cuts };
            let collective = Collective::ReduceScatter;
            let kind = StageKind::Combine { mesh_axis, reduction, collective };
            let bytes = held / workers * (workers - 1);
            stages.push(RedistributionStage { kind, layout: now.clone(), bytes });
            let mut whole = now.clone();
            whole.placements[mesh_axis] = Placement::Replicate;
            stages.push(blocks_stage(now, &whole, meta));
            *now = whole;
        }
        _ => {
            now.placements[mesh_axis] = Placement::Replicate;
            let collective = Collective::AllReduce;
            let kind = StageKind::Combine { mesh_axis, reduction, collective };
            stages.push(RedistributionStage {
                kind,
                layout: now.clone(),
                bytes: held * (workers - 1),
            });
        }
    }
}

/// Combines all partial values of a tensor that is sent to another mesh.
fn leave_partial(now: &mut Layout, to: &Layout, meta: Meta, stages: &mut Vec<RedistributionStage>) {
    for mesh_axis in 0..now.placements.len() {
        let Placement::Partial(reduction) = now.placements[mesh_axis] else { continue };
        // A single receiver combines all of them itself.
        if now.mesh.dims.len() == 1 && to.mesh.size() == 1 {
            let is_member = now.mesh.rank_of(to.mesh.slots[0]).is_some();
            let senders = now.mesh.size() as u64 - u64::from(is_member);
            let collective = Collective::Send;
            let kind = StageKind::Combine { mesh_axis, reduction, collective };
            *now = to.clone();
            let bytes = senders * meta.bytes() as u64;
            return stages.push(RedistributionStage { kind, layout: to.clone(), bytes });
        }
        let taken: Vec<usize> = now.placements.iter().filter_map(Placement::shard_axis).collect();
        let parts = now.mesh.dims[mesh_axis];
        let free =
            (0..meta.shape.rank()).find(|axis| !taken.contains(axis) && meta.shape[*axis] >= parts);
        let target = free.map_or(Placement::Replicate, |axis| {
            Placement::balanced(axis, meta.shape[axis], parts)
        });
        combine(now, mesh_axis, reduction, &target, meta, stages);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use gt_ir::layout::Mesh;
    use gt_ir::redistribute::Redistribution;
    use gt_ir::{DType, Shape, SlotId};
    use smallvec::{SmallVec, smallvec};

    fn mesh(number: u32, slots: std::ops::Range<u32>) -> Arc<Mesh> {
        let dims = smallvec![slots.len()];
        Arc::new(Mesh { number, dims, slots: slots.map(SlotId).collect() })
    }

    fn sources(from: &Layout, to: &Layout, whole: Shape, rank: usize) -> Vec<(usize, Block)> {
        Redistribution { from, to, whole }.sources(rank, to.block(whole, rank))
    }

    fn layout(mesh: &Arc<Mesh>, placement: Placement) -> Layout {
        Layout { mesh: Arc::clone(mesh), placements: smallvec![placement] }
    }

    /// With T the size of the unsharded tensor: (n - 1) T for all-gather, reduce-scatter and
    /// broadcast; twice that for all-reduce; (n - 1) / n T for all-to-all.
    #[test]
    fn bytes_are_the_known_optimum() {
        let meta = Meta::new(DType::F32, Shape::new(&[64, 128]).unwrap());
        let (n, whole) = (4, meta.bytes() as u64);
        let four = mesh(1, 0..4);
        let home = layout(&mesh(2, 0..1), Placement::Replicate);
        let copies = layout(&four, Placement::Replicate);
        let rows = layout(&four, Placement::balanced(0, 64, 4));
        let columns = layout(&four, Placement::balanced(1, 128, 4));
        let sums = layout(&four, Placement::Partial(Reduction::Sum));
        let check = |from: &Layout, to: &Layout, bytes| {
            assert_eq!(cost(from, to, meta), Some(bytes), "{from} to {to}");
        };
        check(&rows, &copies, (n - 1) * whole);
        check(&rows, &columns, (n - 1) * whole / n);
        check(&copies, &rows, 0);
        check(&copies, &sums, 0);
        check(&sums, &rows, (n - 1) * whole);
        check(&sums, &copies, 2 * (n - 1) * whole);
        check(&sums, &home, (n - 1) * whole);
        check(&home, &copies, (n - 1) * whole);
        check(&home, &rows, (n - 1) * whole / n);
        check(&rows, &home, (n - 1) * whole / n);
        let others = layout(&mesh(3, 4..6), Placement::balanced(0, 64, 2));
        check(&rows, &others, whole);
    }

    /// Summands of one rank's row make up its block, never those of another row.
    #[test]
    fn partial_values_are_combined_within_their_mesh_row() {
        let dims: SmallVec<[usize; 2]> = smallvec![2, 3];
        let grid = Arc::new(Mesh { number: 1, dims, slots: (0..6).map(SlotId).collect() });
        let shape = Shape::new(&[5, 7]).unwrap();
        for partial in 0..2 {
            let along = |other: Placement| {
                let mut placements: SmallVec<[Placement; 2]> = smallvec![other.clone(), other];
                placements[partial] = Placement::Partial(Reduction::Sum);
                Layout { mesh: Arc::clone(&grid), placements }
            };
            let length = grid.dims[1 - partial];
            let kinds = [
                Placement::Replicate,
                Placement::balanced(0, 5, length),
                Placement::balanced(1, 7, length),
            ];
            for (from, to) in kinds.iter().flat_map(|a| kinds.iter().map(move |b| (a, b))) {
                let (from, to) = (along(from.clone()), along(to.clone()));
                for rank in 0..6 {
                    let found = sources(&from, &to, shape, rank);
                    let total: usize = found.iter().map(|(_, block)| block.shape.numel()).sum();
                    assert_eq!(total, to.block(shape, rank).shape.numel(), "{from} to {to}");
                    for (source, _) in found {
                        let row = |rank| grid.coordinate(rank, partial);
                        assert_eq!(row(source), row(rank), "{from} to {to}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_element_is_received_once() {
        let dims: SmallVec<[usize; 2]> = smallvec![2, 3];
        let grid = Arc::new(Mesh { number: 1, dims, slots: (0..6).map(SlotId).collect() });
        let shape = Shape::new(&[5, 7]).unwrap();
        let placements =
            [Placement::Replicate, Placement::balanced(0, 5, 2), Placement::balanced(1, 7, 2)];
        let other =
            [Placement::Replicate, Placement::balanced(0, 5, 3), Placement::balanced(1, 7, 3)];
        let layouts: Vec<Layout> = placements
            .iter()
            .flat_map(|a| other.iter().map(move |b| (a.clone(), b.clone())))
            .filter(|(a, b)| a.shard_axis().is_none() || a.shard_axis() != b.shard_axis())
            .map(|(a, b)| Layout { mesh: Arc::clone(&grid), placements: smallvec![a, b] })
            .collect();
        for from in &layouts {
            for to in &layouts {
                for rank in 0..6 {
                    let need = to.block(shape, rank);
                    let total: usize = sources(from, to, shape, rank)
                        .iter()
                        .map(|(source, block)| {
                            assert_eq!(from.block(shape, *source).intersect(block), Some(*block));
                            block.shape.numel()
                        })
                        .sum();
                    assert_eq!(total, need.shape.numel(), "{from} to {to}");
                }
            }
        }
    }
}
