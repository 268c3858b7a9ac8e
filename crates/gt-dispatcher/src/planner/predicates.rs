//! Predicates on a strategy: whether its result is an update that keeps its layout, the output of a
//! reduction, or needs a redistribution that the program did not ask for.

use std::sync::Arc;

use gt_ir::Meta;
use gt_ir::instruction::Instruction;
use gt_ir::layout::{Layout, Mesh};
use gt_ir::operation::Family;

use super::catalogue::{Catalogue, TensorCopy};
use super::redistribution::cost;
use super::strategy::{Strategy, is_place};

/// Returns the layout of the first operand of an elementwise instruction, if a scope placed it on
/// this mesh: an update of a tensor keeps the tensor's layout.
pub(super) fn updated_layout(
    catalogue: &Catalogue,
    instruction: &Instruction,
    output: Meta,
    mesh: &Arc<Mesh>,
) -> Option<Arc<Layout>> {
    let family = instruction.operation.family;
    if !matches!(family, Family::Unary | Family::Binary | Family::Ternary) {
        return None;
    }
    let found = catalogue.placed(*instruction.operands.first()?.tensor()?);
    let layout = &found.copies[0].layout;
    let stays = found.provenance.placed && found.meta.shape == output.shape && layout.mesh == *mesh;
    stays.then(|| Arc::clone(layout))
}

/// Returns whether a result is sharded because partial operands are reduce-scattered.
pub(super) fn reduce_scatters(
    catalogue: &Catalogue,
    instruction: &Instruction,
    strategy: &Strategy,
) -> bool {
    let is_cut = |layout: &Layout| layout.placements.iter().any(|p| p.shard_axis().is_some());
    is_cut(&strategy.output)
        && instruction.operands.iter().zip(&strategy.operands).any(|(operand, layout)| {
            let (Some(id), Some(layout)) = (operand.tensor(), layout) else { return false };
            let found = catalogue.placed(*id);
            let added = found.copies[0].layout.is_partial() && !layout.is_partial();
            is_cut(layout) && (added || found.provenance.combined)
        })
}

/// Returns whether a strategy gathers an operand that is sharded on its mesh.
pub(super) fn gathers(
    catalogue: &Catalogue,
    instruction: &Instruction,
    strategy: &Strategy,
) -> bool {
    let mesh = &strategy.output.mesh;
    mesh.size() > 1
        && instruction.operands.iter().zip(&strategy.operands).any(|(operand, layout)| {
            let (Some(id), Some(layout)) = (operand.tensor(), layout) else { return false };
            let found = catalogue.placed(*id);
            let cut = |copy: &TensorCopy| {
                copy.layout.mesh == *mesh
                    && copy.layout.placements.iter().any(|p| p.shard_axis().is_some())
            };
            let free = |copy: &TensorCopy| cost(&copy.layout, layout, found.meta) == Some(0);
            found.copies.iter().any(cut) && !found.copies.iter().any(free)
        })
}

/// Returns the error, in strict mode, of a strategy that redistributes more than `limit` bytes of
/// an operand that is already on the computing mesh, where neither a scope nor a reduction requires
/// it.
pub(super) fn exceeds_strict_limit(
    catalogue: &Catalogue,
    instruction: &Instruction,
    strategy: &Strategy,
    limit: u64,
) -> Option<String> {
    instruction.operands.iter().zip(&strategy.operands).find_map(|(operand, layout)| {
        let (id, layout) = (operand.tensor()?, layout.as_ref()?);
        let found = catalogue.placed(*id);
        let bytes = |copy: &&TensorCopy| cost(&copy.layout, layout, found.meta).unwrap_or(u64::MAX);
        let cheapest = found.copies.iter().min_by_key(bytes)?;
        let moved = bytes(&cheapest);
        let planned = cheapest.layout.mesh != layout.mesh
            || cheapest.layout.is_partial()
            || found.provenance.combined;
        (moved > limit && !planned && !is_place(instruction.operation)).then(|| {
            format!(
                "it would move {moved} bytes of a tensor of shape {} from {} to {layout}, more than the {limit} that strict mode allows\n  hint: place it with gt.signal.tensor, or see gt.debug.explain",
                found.meta.shape, cheapest.layout
            )
        })
    })
}
