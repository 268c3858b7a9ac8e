//! Slices of tensors that are cut along the very axis: each worker keeps what it has of them.

use std::sync::Arc;

use gt_ir::instruction::{Attribute, Instruction};
use gt_ir::operation::ints;
use gt_ir::{Attributes, Meta, Operand, Scalar, TensorId};
use smallvec::smallvec;

use super::Planner;
use super::emit;
use super::explain::{Reason, placed};
use super::layout::{Layout, Mesh, Placement, balanced_cuts};
use super::moves::cost;
use super::streams::Streams;
use super::tensors::{Copy, Origin, Tensors};

impl Planner {
    /// Plans a slice of a tensor that is cut on this mesh along an axis of which not all is
    /// taken. Says whether it was one.
    pub(super) fn slice_in_place(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        instruction: &Instruction,
        meta: Meta,
        mesh: &Arc<Mesh>,
        name: TensorId,
    ) -> bool {
        let Some(id) = instruction.operands[0].tensor() else { return false };
        let there = tensors.there(*id);
        let (whole, origin) = (there.meta, there.origin);
        let cut =
            |copy: &&Copy| copy.layout.mesh == *mesh && cuts_sliced(&copy.layout, whole, meta);
        let whole_copy = |copy: &Copy| copy.layout.mesh == *mesh && copy.layout.is_replicated();
        if there.copies.iter().any(whole_copy) {
            return false;
        }
        let Some(copy) = there.copies.iter().find(cut).cloned() else { return false };
        let layout = sliced(&copy.layout, instruction);
        for (rank, &worker) in mesh.workers.iter().enumerate() {
            let (from, to) = (copy.layout.block(whole.shape, rank), layout.block(meta.shape, rank));
            if to.shape.numel() == 0 {
                let part = Meta::new(meta.dtype, to.shape);
                let empty = emit::filled(name, Scalar::Int(0), part, instruction.source);
                streams.push(worker, empty);
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
            let operation = instruction.operation;
            streams.push(worker, emit::part(instruction, operation, name, operands, attributes));
        }
        let output = instruction.output;
        tensors.put(output, meta, Arc::new(layout.clone()), name);
        tensors.set_origin(output, Origin { placed: false, ..origin });
        self.balance(tensors, streams, instruction, meta, &layout);
        if let Some(notes) = &mut tensors.notes {
            let operands = vec![placed(&self.cluster, whole, &copy.layout)];
            notes.step(instruction, operands, placed(&self.cluster, meta, &layout));
        }
        true
    }

    /// Shares a slice out anew, where one worker has more than twice its part of it.
    fn balance(
        &mut self,
        tensors: &mut Tensors,
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
        if tensors.strict.is_some_and(|limit| bytes > limit) {
            return;
        }
        let operation = instruction.operation.name;
        let (line, scope) = (instruction.source, None);
        let reason = Reason::Needed { operation, operand: 0, scope };
        self.copy_in(tensors, streams, instruction.output, &even, line, reason);
        tensors.keep_only(instruction.output, &even, streams);
    }
}

/// Whether a layout cuts an axis of which a slice takes a part.
fn cuts_sliced(layout: &Layout, whole: Meta, slice: Meta) -> bool {
    let axes = layout.placements.iter().filter_map(Placement::shard_axis);
    axes.into_iter().any(|axis| whole.shape[axis] != slice.shape[axis])
}

/// How a slice lies if everybody keeps what he has of it.
fn sliced(layout: &Layout, instruction: &Instruction) -> Layout {
    let of = |index: usize, axis: usize| ints(&instruction.attributes, index)[axis] as usize;
    let mut layout = layout.clone();
    for placement in &mut layout.placements {
        let Placement::Shard { axis, cuts } = placement else { continue };
        let (start, size, step) = (of(0, *axis), of(1, *axis), of(2, *axis));
        // How many of the elements that are taken stand before a cut.
        let before = |cut: &usize| cut.saturating_sub(start).div_ceil(step).min(size);
        *cuts = cuts.iter().map(before).collect();
    }
    layout
}
