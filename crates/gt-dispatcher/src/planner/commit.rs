//! The commit of a step, whose tensors may be on several slots.
//!
//! Slots that hold all of its tensors, replicated, each commit by themselves. Otherwise each slot
//! checks what it holds of the step, and the slots exchange one number or a failure before they
//! commit. A slot never waits for another if one slot holds everything.

use std::collections::BTreeSet;
use std::sync::Arc;

use gt_ir::instruction::{Instruction, Operands, Results};
use gt_ir::layout::{Layout, Placement};
use gt_ir::message::Failure;
use gt_ir::ops::commit::{COMMIT, CommitParts, RESULT, attributes};
use gt_ir::ops::shape::RESHAPE;
use gt_ir::sharding::Reduction;
use gt_ir::{Attribute, Meta, Operand, SlotId, TensorId, WorkerCommand};
use smallvec::smallvec;

use super::Planner;
use super::catalogue::{Catalogue, TensorCopy, free_copy};
use super::emit;
use super::explain::Reason;
use super::redistribution::stages;
use super::run::{fail_outputs, failure};
use super::streams::Streams;

/// A tensor of a step, in the layout in which it is committed.
struct Watched {
    new: TensorCopy,
    /// `None` for a guard.
    old: Option<TensorCopy>,
}

impl Planner {
    /// Plans the commit of a step.
    pub(super) fn commit(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        parts: &CommitParts<TensorId>,
    ) {
        if let Some(failure) = first_failure(catalogue, parts) {
            for &(new, old) in &parts.pairs {
                restore_old(catalogue, streams, instruction, new, old);
            }
            return catalogue.fail(instruction.output, failure);
        }
        // A tensor whose old value has failed is only checked: there is nothing to go back to.
        let has_old = |old| catalogue.get(old).is_ok();
        let (pairs, alone): (Vec<_>, Vec<_>) =
            parts.pairs.iter().copied().partition(|(_, old)| has_old(*old));
        let guards = parts.guards.iter().copied().chain(alone.iter().map(|(new, _)| *new));
        let guards: Vec<TensorId> = guards.collect();
        if let Err(reason) = check(catalogue, &pairs) {
            let failure = failure(instruction, reason);
            return fail_outputs(catalogue, instruction, &failure);
        }
        let mut watched = Vec::with_capacity(guards.len() + pairs.len());
        for id in guards {
            watched.push(Watched { new: catalogue.placed(id).copies[0].clone(), old: None });
        }
        for (new, old) in pairs {
            let layout = self.complete_layout(catalogue, new);
            let line = instruction.source;
            let (operation, scope) = (COMMIT.name, None);
            let reason = Reason::Needed { operation, operand: 0, scope };
            let made = self.copy_in_layout(catalogue, streams, new, &layout, line, reason);
            catalogue.keep_only(new, &layout, streams);
            let old = self.copy_in_layout(catalogue, streams, old, &layout, line, reason);
            watched.push(Watched { new: made, old: Some(old) });
        }
        self.emit_commit(catalogue, streams, instruction, &watched);
    }

    /// Returns the layout in which a new value is committed: the first that is not partial.
    fn complete_layout(&self, catalogue: &Catalogue, id: TensorId) -> Layout {
        let copies = &catalogue.placed(id).copies;
        match copies.iter().find(|copy| !copy.layout.is_partial()) {
            Some(copy) => (*copy.layout).clone(),
            None => Layout::replicated(&copies[0].layout.mesh),
        }
    }

    /// Emits the slots' commands.
    fn emit_commit(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        watched: &[Watched],
    ) {
        let slots: BTreeSet<SlotId> =
            watched.iter().flat_map(|of| of.new.layout.mesh.slots.iter().copied()).collect();
        let slots: Vec<SlotId> = slots.into_iter().collect();
        let mesh = match watched {
            [first, ..] if first.new.layout.mesh.slots == slots => {
                Arc::clone(&first.new.layout.mesh)
            }
            _ => self.meshes.get(&[slots.len()], &slots),
        };
        let whole = Layout::replicated(&mesh);
        let is_replicated = watched.iter().all(|of| *of.new.layout == whole);
        let mut guard = None;
        if slots.len() > 1 && !is_replicated {
            guard = Some(self.exchange_flag(catalogue, streams, instruction, watched, &slots));
        }
        for &slot in &slots {
            let here = watched.iter().filter(|of| of.new.layout.mesh.rank_of(slot).is_some());
            let guards: Vec<TensorId> = match &guard {
                Some(guard) => vec![guard.id],
                None => here.clone().filter(|of| of.old.is_none()).map(|of| of.new.id).collect(),
            };
            let pairs = here.filter_map(|of| Some([of.new.id, of.old.as_ref()?.id])).flatten();
            let operands: Operands =
                guards.iter().copied().chain(pairs).map(Operand::Tensor).collect();
            let attributes = attributes(guards.len(), slots.len() > 1 && is_replicated);
            let (output, results) = (instruction.output, Results::from_buf([RESULT]));
            let part = emit::part(instruction, &COMMIT, output, results, operands, attributes);
            streams.push(slot, part);
        }
        if let Some(guard) = guard {
            free_copy(&guard, streams);
        }
        catalogue.put(instruction.output, RESULT, Arc::new(whole), instruction.output);
    }

    /// Emits the exchange in which each slot checks its tensors and notifies the others. Returns
    /// the number that all slots then hold.
    fn exchange_flag(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        watched: &[Watched],
        slots: &[SlotId],
    ) -> TensorCopy {
        let mesh = self.meshes.get(&[slots.len()], slots);
        let placements = smallvec![Placement::Partial(Reduction::Sum)];
        let partial = Layout { mesh: Arc::clone(&mesh), placements };
        let whole = Layout::replicated(&mesh);
        let steps = stages(&partial, &whole, RESULT).expect("partial values can be combined");
        let mut flag = TensorCopy { layout: Arc::new(partial), id: catalogue.name(), made: 0 };
        for &slot in slots {
            let here = watched.iter().filter(|of| of.new.layout.mesh.rank_of(slot).is_some());
            let operands: Operands = here.map(|of| Operand::Tensor(of.new.id)).collect();
            let attributes = attributes(operands.len(), false);
            let results = Results::from_buf([RESULT]);
            let part = emit::part(instruction, &COMMIT, flag.id, results, operands, attributes);
            streams.push(slot, part);
        }
        for step in &steps {
            self.stats.redistributions += u64::from(step.bytes > 0);
            self.stats.bytes += step.bytes;
            let next = emit::stage(catalogue, streams, &flag, step, RESULT, instruction.source);
            free_copy(&flag, streams);
            flag = next;
        }
        flag
    }
}

/// Returns the known failure of a step's tensors that is first in the program's order.
fn first_failure(catalogue: &Catalogue, parts: &CommitParts<TensorId>) -> Option<Arc<Failure>> {
    let failures = parts.watched().filter_map(|id| catalogue.get(id).err());
    failures.min_by_key(|failure| failure.order())
}

/// Checks that pairs of new and old values have equal shapes and dtypes.
fn check(catalogue: &Catalogue, pairs: &[(TensorId, TensorId)]) -> Result<(), String> {
    for &(new, old) in pairs {
        let (new, old) = (catalogue.placed(new).meta, catalogue.placed(old).meta);
        if new != old {
            return Err(format!(
                "a new value of {} {} for one of {} {}",
                new.dtype, new.shape, old.dtype, old.shape
            ));
        }
    }
    Ok(())
}

/// Replaces a tensor's value by another's, under a new name on the workers.
fn restore_old(
    catalogue: &mut Catalogue,
    streams: &mut Streams,
    instruction: &Instruction,
    new: TensorId,
    old: TensorId,
) {
    let (meta, copy, provenance) = match catalogue.get(old) {
        Ok(placed) => (placed.meta, placed.copies[0].clone(), placed.provenance),
        Err(failure) => {
            catalogue.free(new, streams);
            return catalogue.fail(new, failure);
        }
    };
    let name = catalogue.name();
    for (rank, &slot) in copy.layout.mesh.slots.iter().enumerate() {
        let part = Meta::new(meta.dtype, copy.layout.block(meta.shape, rank).shape);
        let (operands, attributes) =
            (smallvec![Operand::Tensor(copy.id)], smallvec![Attribute::dims(&part.shape)]);
        let results = Results::from_buf([part]);
        let part: WorkerCommand =
            emit::part(instruction, &RESHAPE, name, results, operands, attributes);
        streams.push(slot, part);
    }
    catalogue.free(new, streams);
    catalogue.put(new, meta, copy.layout, name);
    catalogue.set_provenance(new, provenance);
}
