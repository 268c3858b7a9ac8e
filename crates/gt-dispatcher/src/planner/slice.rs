//! Slices along a sharded axis: computed as an evenly sharded batch, or by each slot on its own
//! shard.

use std::sync::Arc;

use gt_ir::exchange::Collective;
use gt_ir::instruction::{Attribute, Instruction};
use gt_ir::layout::{Layout, Mesh, Placement, balanced_cuts};
use gt_ir::operation::ints;
use gt_ir::redistribute::Redistribution;
use gt_ir::sharding::Block;
use gt_ir::{Attributes, Meta, Operand, Scalar, TensorId};
use smallvec::smallvec;

use super::Planner;
use super::catalogue::{Catalogue, Provenance, TensorCopy};
use super::emit::{self, TensorExchange};
use super::explain::{Reason, placed};
use super::redistribution::{RedistributionStage, StageKind, cost};
use super::streams::Streams;
use super::varying_slices::SlicedExchange;

impl Planner {
    /// Plans a slice of a tensor that is sharded on this mesh along a sliced axis. Returns whether
    /// the instruction is one.
    pub(super) fn slice_in_place(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        meta: Meta,
        mesh: &Arc<Mesh>,
        name: TensorId,
    ) -> bool {
        let Some(id) = instruction.operands[0].tensor() else { return false };
        let found = catalogue.placed(*id);
        let (whole, provenance) = (found.meta, found.provenance);
        let cut = |copy: &&TensorCopy| {
            copy.layout.mesh == *mesh && cuts_sliced(&copy.layout, whole, meta)
        };
        let whole_copy =
            |copy: &TensorCopy| copy.layout.mesh == *mesh && copy.layout.is_replicated();
        if found.copies.iter().any(whole_copy) {
            return false;
        }
        let Some(copy) = found.copies.iter().find(cut).cloned() else { return false };
        if self.take_batch(catalogue, streams, instruction, meta, &copy, whole) {
            catalogue.set_provenance(name, Provenance { placed: false, ..provenance });
            return true;
        }
        // The part that each slot keeps depends on the slice's position.
        catalogue.varying.fix(name);
        let layout = sliced(&copy.layout, instruction);
        for (rank, &slot) in mesh.slots.iter().enumerate() {
            let (from, to) = (copy.layout.block(whole.shape, rank), layout.block(meta.shape, rank));
            let part = Meta::new(meta.dtype, to.shape);
            if to.shape.numel() == 0 {
                let empty = emit::filled(name, Scalar::Int(0), part, instruction.source);
                streams.push(slot, empty);
                continue;
            }
            let steps = ints(&instruction.attributes, 2);
            let starts: Vec<i64> = (0..meta.shape.rank())
                .map(|axis| {
                    let first = ints(&instruction.attributes, 0)[axis];
                    first + to.starts[axis] as i64 * steps[axis] - from.starts[axis] as i64
                })
                .collect();
            let attributes: Attributes = smallvec![
                Attribute::ints(&starts),
                Attribute::dims(&to.shape),
                Attribute::ints(steps),
            ];
            let operands = smallvec![Operand::Tensor(copy.id)];
            let (operation, results) = (instruction.operation, smallvec![part]);
            let part = emit::part(instruction, operation, name, results, operands, attributes);
            streams.push(slot, part);
        }
        let output = instruction.output;
        catalogue.put(output, meta, Arc::new(layout.clone()), name);
        catalogue.set_provenance(output, Provenance { placed: false, ..provenance });
        self.balance(catalogue, streams, instruction, meta, &layout);
        record(catalogue, instruction, (whole, &copy.layout), (meta, &layout));
        true
    }

    /// Plans a slice no longer than one slot's shard, such as a batch of a data set: sharded
    /// evenly, wherever it lies. Returns whether the instruction is one.
    fn take_batch(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        meta: Meta,
        copy: &TensorCopy,
        whole: Meta,
    ) -> bool {
        let Some(layout) = batch_layout(&copy.layout, instruction, whole, meta) else {
            return false;
        };
        let starts = ints(&instruction.attributes, 0);
        let (from, to) = (&*copy.layout, &layout);
        let parts = Redistribution { from, to, whole: whole.shape }.of_slice(starts, meta.shape);
        let size = |block: &Block| (block.shape.numel() * meta.dtype.size()) as u64;
        let sends = parts.iter().flat_map(|parts| &parts.parts.sends);
        let bytes: u64 = sends.map(|(_, block)| size(block)).sum();
        if catalogue.strict.is_some_and(|limit| bytes > limit) {
            return false;
        }
        let collective = Collective::AllToAll;
        if let Some(recorder) = &mut catalogue.recorder {
            let kind = StageKind::Blocks(collective);
            let stage =
                RedistributionStage { kind, layout: layout.clone(), bytes, is_chain: false };
            let (operation, operand, scope) = (instruction.operation.name, 0, None);
            let reason = Reason::Needed { operation, operand, scope };
            if bytes > 0 {
                recorder.add_redistribution(&catalogue.slots, meta, &copy.layout, &stage, reason);
            }
        }
        self.stats.redistributions += u64::from(bytes > 0);
        self.stats.bytes += bytes;
        let output = instruction.output;
        let to = TensorCopy { layout: Arc::new(layout), id: output, made: 0 };
        let line = instruction.source;
        // The members depend on the slice's position.
        let (reduction, may_be_collective) = (None, false);
        let exchanged = TensorExchange {
            from: copy,
            to: &to,
            meta,
            collective,
            reduction,
            line,
            may_be_collective,
        };
        let transfer = exchanged.emit(catalogue, streams, parts);
        let (from, to_layout) = (Arc::clone(&copy.layout), Arc::clone(&to.layout));
        let (whole_shape, size) = (whole.shape, meta.shape);
        let exchange = SlicedExchange { output, whole: whole_shape, from, size, to: to_layout };
        catalogue.varying.add_exchange(transfer, exchange);
        catalogue.put(output, meta, Arc::clone(&to.layout), output);
        record(catalogue, instruction, (whole, &copy.layout), (meta, &to.layout));
        true
    }

    /// Rebalances a slice of which one slot has more than twice its fair part.
    fn balance(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        meta: Meta,
        layout: &Layout,
    ) {
        let mut even = layout.clone();
        for (placement, &parts) in even.placements.iter_mut().zip(&layout.mesh.dims) {
            let Placement::Shard { axis, cuts } = placement else { continue };
            let fair = meta.shape[*axis].div_ceil(parts);
            let longest = cuts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
            if longest > 2 * fair {
                *cuts = balanced_cuts(meta.shape[*axis], parts);
            }
        }
        let Some(bytes) = cost(layout, &even, meta).filter(|_| even != *layout) else { return };
        if catalogue.strict.is_some_and(|limit| bytes > limit) {
            return;
        }
        let operation = instruction.operation.name;
        let (line, scope) = (instruction.source, None);
        let reason = Reason::Needed { operation, operand: 0, scope };
        self.copy_in_layout(catalogue, streams, instruction.output, &even, line, reason);
        catalogue.keep_only(instruction.output, &even, streams);
    }
}

/// Records a slice, if an explanation is being recorded.
fn record(
    catalogue: &mut Catalogue,
    instruction: &Instruction,
    (whole, from): (Meta, &Layout),
    (slice, to): (Meta, &Layout),
) {
    if let Some(recorder) = &mut catalogue.recorder {
        let operands = vec![placed(&catalogue.slots, whole, from)];
        recorder.step(instruction, operands, placed(&catalogue.slots, slice, to));
    }
}

/// Returns the even layout of a contiguous slice; `None` if along a sharded axis it is longer than
/// the longest shard.
fn batch_layout(
    layout: &Layout,
    instruction: &Instruction,
    whole: Meta,
    slice: Meta,
) -> Option<Layout> {
    if layout.is_partial() || ints(&instruction.attributes, 2).iter().any(|&step| step != 1) {
        return None;
    }
    let mut even = layout.clone();
    for (placement, &parts) in even.placements.iter_mut().zip(&layout.mesh.dims) {
        let Placement::Shard { axis, cuts } = placement else { continue };
        let (length, all) = (slice.shape[*axis], whole.shape[*axis]);
        if length == all {
            continue;
        }
        let longest = cuts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0);
        if length > longest {
            return None;
        }
        *cuts = balanced_cuts(length, parts);
    }
    Some(even)
}

/// Returns whether a layout shards an axis of which the slice takes a part.
fn cuts_sliced(layout: &Layout, whole: Meta, slice: Meta) -> bool {
    let axes = layout.placements.iter().filter_map(Placement::shard_axis);
    axes.into_iter().any(|axis| whole.shape[axis] != slice.shape[axis])
}

/// Returns the layout of a slice if each slot keeps its own part of it.
fn sliced(layout: &Layout, instruction: &Instruction) -> Layout {
    let of = |index: usize, axis: usize| ints(&instruction.attributes, index)[axis] as usize;
    let mut layout = layout.clone();
    for placement in &mut layout.placements {
        let Placement::Shard { axis, cuts } = placement else { continue };
        let (start, size, step) = (of(0, *axis), of(1, *axis), of(2, *axis));
        // The number of elements taken before a cut.
        let before = |cut: &usize| cut.saturating_sub(start).div_ceil(step).min(size);
        *cuts = cuts.iter().map(before).collect();
    }
    layout
}
