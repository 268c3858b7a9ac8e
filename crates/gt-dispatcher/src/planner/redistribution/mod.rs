//! Redistribution: the stages that take a tensor from one layout to another, and their cost.

use gt_ir::exchange::Collective;
use gt_ir::layout::{Layout, Placement, balanced_cuts};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{Meta, chain};

/// One step of a redistribution.
#[derive(Clone, PartialEq, Debug)]
pub struct RedistributionStage {
    pub kind: StageKind,
    /// The layout after the stage.
    pub layout: Layout,
    /// The bytes sent between slots.
    pub bytes: u64,
    /// Whether they go from neighbour to neighbour, unless the engines exchange them.
    pub is_chain: bool,
}

impl RedistributionStage {
    /// Returns the cost used to compare strategies: the stage's bytes. A one-step all-reduce, which
    /// sends more to save latency, costs as much as one in two steps.
    fn price(&self) -> u64 {
        match self.kind {
            StageKind::Combine { mesh_axis, collective: Collective::AllReduce, .. }
                if !self.is_chain =>
            {
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
            let (kind, layout) = (StageKind::Zeros { mesh_axis }, now.clone());
            stages.push(RedistributionStage { kind, layout, bytes: 0, is_chain: false });
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
    let is_chain = match kind {
        StageKind::Blocks(Collective::Broadcast) => {
            from.mesh.size() == 1 && chain::is_chain(to.mesh.size(), meta.bytes() as u64)
        }
        StageKind::Blocks(Collective::AllGather) => gathered_axis(from, to)
            .is_some_and(|axis| chain::is_chain(to.mesh.dims[axis], meta.bytes() as u64)),
        _ => false,
    };
    RedistributionStage { kind, layout: to.clone(), bytes, is_chain }
}

/// Returns the mesh axis along which blocks are gathered, if it is the only one that changes.
pub fn gathered_axis(from: &Layout, to: &Layout) -> Option<usize> {
    let pairs = from.placements.iter().zip(&to.placements).enumerate();
    let mut changed = pairs.filter(|(_, (before, after))| before != after);
    let (axis, (before, after)) = changed.next()?;
    let is_gather = before.shard_axis().is_some() && *after == Placement::Replicate;
    (is_gather && changed.next().is_none()).then_some(axis)
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
    let is_chain = chain::is_chain(workers as usize, held / now.mesh.size() as u64);
    let taken: Vec<usize> = now.placements.iter().filter_map(Placement::shard_axis).collect();
    if let Placement::Shard { axis, .. } = target
        && !taken.contains(axis)
    {
        now.placements[mesh_axis] = target.clone();
        let collective = Collective::ReduceScatter;
        let kind = StageKind::Combine { mesh_axis, reduction, collective };
        // In a chain, each block goes to the last slot, and back to the one that needs it.
        let there = held / workers * (workers - 1);
        let bytes = if is_chain { there + there / 2 } else { there };
        return stages.push(RedistributionStage { kind, layout: now.clone(), bytes, is_chain });
    }
    if is_chain {
        now.placements[mesh_axis] = Placement::Replicate;
        let collective = Collective::AllReduce;
        let kind = StageKind::Combine { mesh_axis, reduction, collective };
        let bytes = 2 * (held / workers * (workers - 1));
        return stages.push(RedistributionStage { kind, layout: now.clone(), bytes, is_chain });
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
            stages.push(RedistributionStage { kind, layout: now.clone(), bytes, is_chain });
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
                is_chain,
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
            let (layout, is_chain) = (to.clone(), false);
            return stages.push(RedistributionStage { kind, layout, bytes, is_chain });
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
mod tests;
