//! The fast path: instructions whose operands have the same layout run where these are, without a
//! search for a strategy.

use std::sync::Arc;

use gt_ir::instruction::Instruction;
use gt_ir::layout::Layout;
use gt_ir::message::Failure;
use gt_ir::operation::Family;
use gt_ir::{Meta, Operand, TensorId, WorkerCommand};
use smallvec::SmallVec;

use super::catalogue::{Catalogue, Provenance, TensorCopy};
use super::explain::placed;
use super::scope::ResolvedPlacement;
use super::streams::Streams;

/// Where the operands of an instruction are.
pub(super) enum OperandPlacement {
    /// All in one layout, under these names.
    Together {
        layout: Arc<Layout>,
        names: SmallVec<[TensorId; 3]>,
        provenance: Provenance,
    },
    /// The instruction has no tensor operand.
    None,
    /// An operand has failed.
    Failed(Arc<Failure>),
    Apart,
}

/// Returns the operands' layout, if a single slot holds all of them.
#[inline]
pub(super) fn single_place(catalogue: &Catalogue, instruction: &Instruction) -> OperandPlacement {
    gather(catalogue, instruction, |copy, layout| match layout {
        None => copy.layout.mesh.size() == 1,
        Some(layout) => Arc::ptr_eq(layout, &copy.layout) || layout.mesh == copy.layout.mesh,
    })
}

/// Returns the layout of an elementwise instruction's operands, if all tensors share it and have
/// the result's shape: no other strategy can be cheaper.
pub(super) fn aligned(
    catalogue: &Catalogue,
    instruction: &Instruction,
    output: Meta,
    wanted: Option<&ResolvedPlacement>,
) -> OperandPlacement {
    let family = instruction.operation.family;
    let is_elementwise = matches!(family, Family::Unary | Family::Binary | Family::Ternary);
    let has_shape =
        |id: TensorId| catalogue.get(id).is_ok_and(|found| found.meta.shape == output.shape);
    if !is_elementwise || !instruction.reads().all(has_shape) {
        return OperandPlacement::Apart;
    }
    gather(catalogue, instruction, |copy, layout| match layout {
        None => {
            let fits = wanted.is_none_or(|wanted| wanted.mesh == copy.layout.mesh);
            fits && !copy.layout.is_partial()
        }
        Some(layout) => Arc::ptr_eq(layout, &copy.layout) || *layout == copy.layout,
    })
}

/// Returns the operands' common layout, if each has one copy only and `fits` accepts it, given the
/// layout of the first.
#[inline]
fn gather(
    catalogue: &Catalogue,
    instruction: &Instruction,
    fits: impl Fn(&TensorCopy, Option<&Arc<Layout>>) -> bool,
) -> OperandPlacement {
    let mut names: SmallVec<[TensorId; 3]> = SmallVec::new();
    let mut together: Option<(&Arc<Layout>, Provenance)> = None;
    for operand in &instruction.operands {
        let Operand::Tensor(id) = operand else { continue };
        let found = match catalogue.get(*id) {
            Ok(found) => found,
            Err(failure) => return OperandPlacement::Failed(failure),
        };
        let [copy] = found.copies.as_slice() else { return OperandPlacement::Apart };
        if !fits(copy, together.as_ref().map(|(layout, _)| *layout)) {
            return OperandPlacement::Apart;
        }
        names.push(copy.id);
        match &mut together {
            None => together = Some((&copy.layout, found.provenance)),
            Some((_, provenance)) => provenance.combined |= found.provenance.combined,
        }
    }
    match together {
        Some((layout, provenance)) => {
            OperandPlacement::Together { layout: Arc::clone(layout), names, provenance }
        }
        None => OperandPlacement::None,
    }
}

/// Emits the instruction for each slot of the operands' layout: either that is a single slot, or
/// the operation is elementwise, so that parts are computed like the unsharded tensor.
#[inline]
pub(super) fn run_in_place(
    catalogue: &mut Catalogue,
    streams: &mut Streams,
    mut instruction: Instruction,
    layout: Arc<Layout>,
    names: &[TensorId],
    provenance: Provenance,
) {
    if catalogue.recorder.is_some() {
        record_in_place(catalogue, &instruction, &layout);
    }
    let mut names = names.iter();
    for operand in &mut instruction.operands {
        if let Operand::Tensor(id) = operand {
            *id = *names.next().expect("every operand was found");
        }
    }
    let output = instruction.output;
    let single = layout.mesh.size() == 1;
    for (index, meta) in instruction.results.iter().enumerate() {
        let id = output.after(index as u64);
        catalogue.put(id, *meta, Arc::clone(&layout), id);
        if provenance != Provenance::default() {
            catalogue.set_provenance(id, provenance);
        }
    }
    if single {
        return streams.push(layout.mesh.slots[0], WorkerCommand::Run(Arc::new(instruction)));
    }
    let wholes = instruction.results.clone();
    let mut part = Arc::new(instruction);
    for (rank, &slot) in layout.mesh.slots.iter().enumerate() {
        let shape = |whole: &Meta| layout.block(whole.shape, rank).shape;
        // Most parts have the same size.
        if !part.results.iter().zip(&wholes).all(|(part, whole)| part.shape == shape(whole)) {
            let results = &mut Arc::make_mut(&mut part).results;
            results.iter_mut().zip(&wholes).for_each(|(part, whole)| part.shape = shape(whole));
        }
        streams.push(slot, WorkerCommand::Run(Arc::clone(&part)));
    }
}

fn record_in_place(catalogue: &mut Catalogue, instruction: &Instruction, layout: &Layout) {
    let operands = instruction.operands.iter().filter_map(Operand::tensor);
    let operands =
        operands.map(|id| placed(&catalogue.slots, catalogue.placed(*id).meta, layout)).collect();
    let output = placed(&catalogue.slots, instruction.meta(), layout);
    if let Some(recorder) = &mut catalogue.recorder {
        recorder.step(instruction, operands, output);
    }
}
