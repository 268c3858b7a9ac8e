//! Instructions whose operands lie alike: computed where they are, without a strategy.

use std::sync::Arc;

use gt_ir::instruction::Instruction;
use gt_ir::layout::Layout;
use gt_ir::message::Failure;
use gt_ir::operation::Family;
use gt_ir::{Meta, Operand, TensorId, WorkerCommand};
use smallvec::SmallVec;

use super::catalogue::{Catalogue, Provenance, TensorCopy};
use super::explain::placed;
use super::scope::Wanted;
use super::streams::Streams;

/// Where the operands of an instruction are.
pub(super) enum Operands {
    /// All at one place, under these names.
    Together {
        layout: Arc<Layout>,
        names: SmallVec<[TensorId; 3]>,
        provenance: Provenance,
    },
    /// It has none.
    None,
    /// One is nowhere.
    Failed(Arc<Failure>),
    Apart,
}

/// The slot on which all operands are alone, if there is one.
#[inline]
pub(super) fn single_place(catalogue: &Catalogue, instruction: &Instruction) -> Operands {
    gather(catalogue, instruction, |copy, layout| match layout {
        None => copy.layout.mesh.size() == 1,
        Some(layout) => Arc::ptr_eq(layout, &copy.layout) || layout.mesh == copy.layout.mesh,
    })
}

/// The layout of all operands of an elementwise instruction, if they all have the one of the
/// result: then nothing else is worth a thought. Numbers may stand among them.
pub(super) fn aligned(
    catalogue: &Catalogue,
    instruction: &Instruction,
    output: Meta,
    wanted: Option<&Wanted>,
) -> Operands {
    let family = instruction.operation.family;
    let is_elementwise = matches!(family, Family::Unary | Family::Binary | Family::Ternary);
    let has_shape =
        |id: TensorId| catalogue.get(id).is_ok_and(|found| found.meta.shape == output.shape);
    if !is_elementwise || !instruction.reads().all(has_shape) {
        return Operands::Apart;
    }
    gather(catalogue, instruction, |copy, layout| match layout {
        None => {
            let fits = wanted.is_none_or(|wanted| wanted.mesh == copy.layout.mesh);
            fits && !copy.layout.is_partial()
        }
        Some(layout) => Arc::ptr_eq(layout, &copy.layout) || *layout == copy.layout,
    })
}

/// The place of all operands, if each is in one layout only and `fits` finds it the same as that of
/// those before.
#[inline]
fn gather(
    catalogue: &Catalogue,
    instruction: &Instruction,
    fits: impl Fn(&TensorCopy, Option<&Arc<Layout>>) -> bool,
) -> Operands {
    let mut names: SmallVec<[TensorId; 3]> = SmallVec::new();
    let mut together: Option<(&Arc<Layout>, Provenance)> = None;
    for operand in &instruction.operands {
        let Operand::Tensor(id) = operand else { continue };
        let found = match catalogue.get(*id) {
            Ok(found) => found,
            Err(failure) => return Operands::Failed(failure),
        };
        let [copy] = found.copies.as_slice() else { return Operands::Apart };
        if !fits(copy, together.as_ref().map(|(layout, _)| *layout)) {
            return Operands::Apart;
        }
        names.push(copy.id);
        match &mut together {
            None => together = Some((&copy.layout, found.provenance)),
            Some((_, provenance)) => provenance.combined |= found.provenance.combined,
        }
    }
    match together {
        Some((layout, provenance)) => {
            Operands::Together { layout: Arc::clone(layout), names, provenance }
        }
        None => Operands::None,
    }
}

/// Each slot of a layout in which the operands lie computes its part as the whole is computed: on
/// one slot alone, or elementwise.
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
        // Most parts are of one size.
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
