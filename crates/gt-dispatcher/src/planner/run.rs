//! Plans one instruction: chooses where it runs, redistributes its operands, and emits each slot's
//! part.

use std::sync::Arc;

use gt_ir::instruction::Instruction;
use gt_ir::layout::{Layout, Mesh};
use gt_ir::message::Failure;
use gt_ir::operation::{Body, Call};
use gt_ir::ops::commit::is_commit;
use gt_ir::ops::slice;
use gt_ir::sharding::Rule;
use gt_ir::{Meta, Operand, SourceId, TensorId};
use smallvec::SmallVec;

use super::Planner;
use super::catalogue::{Catalogue, OperandMetas, Provenance, TensorCopy};
use super::emit;
use super::explain::{Reason, placed};
use super::in_place::{OperandPlacement, aligned, run_in_place, single_place};
use super::local::LocalParts;
use super::predicates::{exceeds_strict_limit, gathers, reduce_scatters, updated_layout};
use super::redistribution::{cost, stages};
use super::scope::ResolvedPlacement;
use super::strategy::{Candidates, OperandLayouts, Strategy, is_place, is_view};
use super::streams::Streams;

impl Planner {
    /// Plans an instruction of a session, and appends the slots' parts to their streams.
    ///
    /// # Errors
    /// No valid client would send the instruction.
    pub(super) fn run(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: Instruction,
    ) -> Result<(), String> {
        catalogue.fix_slots_for(instruction.signal);
        // With one possible slot there is nothing to infer: the worker checks the instruction.
        if instruction.signal == 0 || catalogue.slots.count() == 1 {
            match single_place(catalogue, &instruction) {
                OperandPlacement::Together { layout, names, provenance } => {
                    run_in_place(catalogue, streams, instruction, layout, &names, provenance);
                    return Ok(());
                }
                OperandPlacement::None
                    if self.automatic(catalogue, instruction.meta()).is_none() =>
                {
                    let layout = catalogue.home(&mut self.meshes);
                    let provenance = Provenance::default();
                    run_in_place(catalogue, streams, instruction, layout, &[], provenance);
                    return Ok(());
                }
                OperandPlacement::Failed(failure) if !is_commit(instruction.operation) => {
                    fail_outputs(catalogue, &instruction, &failure);
                    return Ok(());
                }
                OperandPlacement::Failed(_) | OperandPlacement::None | OperandPlacement::Apart => {}
            }
        }
        if let Some(parts) = instruction.commit() {
            self.commit(catalogue, streams, &instruction, &parts);
            return Ok(());
        }
        match self.planning_input(catalogue, &instruction) {
            Ok((_, OperandPlacement::Together { layout, names, provenance })) => {
                run_in_place(catalogue, streams, instruction, layout, &names, provenance);
            }
            Ok((PlanningInput { metas, meta, wanted }, _)) => {
                let of = (&instruction, &metas, meta);
                match self.run_by_strategy(catalogue, streams, of, wanted) {
                    Ok(done) => return done,
                    Err(reason) => {
                        let failure = failure(&instruction, reason);
                        fail_outputs(catalogue, &instruction, &failure);
                    }
                }
            }
            Err(failure) => fail_outputs(catalogue, &instruction, &failure),
        }
        Ok(())
    }

    /// Returns the metas and the placement by which an instruction is planned; and its operands'
    /// common layout, if it can run in place.
    ///
    /// # Errors
    /// The instruction's failure.
    fn planning_input(
        &mut self,
        catalogue: &mut Catalogue,
        instruction: &Instruction,
    ) -> Result<(PlanningInput, OperandPlacement), Arc<Failure>> {
        let metas = operand_metas(catalogue, instruction)?;
        let fail = |reason| failure(instruction, reason);
        instruction.check(&metas).map_err(fail)?;
        let meta = instruction.meta();
        let from_nothing = instruction.reads().next().is_none();
        let wanted = match self.wanted(catalogue, instruction.signal).map_err(fail)? {
            None if from_nothing => self.automatic(catalogue, meta),
            wanted => wanted,
        };
        let mut operands = OperandPlacement::Apart;
        if wanted.is_none() {
            operands = single_place(catalogue, instruction);
        }
        if !matches!(operands, OperandPlacement::Together { .. }) {
            operands = aligned(catalogue, instruction, meta, wanted.as_ref());
        }
        Ok((PlanningInput { metas, meta, wanted }, operands))
    }

    /// Plans an instruction by a strategy, on the mesh of its scope or of its operands.
    ///
    /// # Errors
    /// The reason that the instruction fails; the inner error is one that no valid client causes.
    fn run_by_strategy(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        (instruction, metas, meta): (&Instruction, &OperandMetas, Meta),
        wanted: Option<ResolvedPlacement>,
    ) -> Result<Result<(), String>, String> {
        let name = instruction.output;
        let from_nothing = instruction.reads().next().is_none();
        let mesh = self.mesh_for(catalogue, instruction, wanted.as_ref());
        if instruction.operation.id == slice::SLICE.id
            && self.slice_in_place(catalogue, streams, instruction, meta, &mesh, name)
        {
            return Ok(Ok(()));
        }
        let stays_at = updated_layout(catalogue, instruction, meta, &mesh);
        let wanted = wanted.filter(|wanted| wanted.mesh == mesh).map(|wanted| wanted.layout(meta));
        let call = Call {
            operation: instruction.operation.name,
            operands: metas,
            attributes: &instruction.attributes,
        };
        let mut rule = (instruction.operation.sharding)(&call, &meta);
        rule.linear.retain(|set| sums_exactly(*set, metas, meta));
        let strategy = choose_strategy(
            catalogue,
            instruction,
            &rule,
            metas,
            meta,
            &mesh,
            wanted.as_ref(),
            stays_at.as_deref(),
        );
        // Planned by its steps, it redistributes less, or an update keeps the layout of the tensor
        // that it updates.
        if let Body::Composite(_) = instruction.operation.body
            && !is_place(instruction.operation)
            && (gathers(catalogue, instruction, &strategy)
                || stays_at.as_deref().is_some_and(|layout| *layout != strategy.output))
        {
            return Ok(self.expand(catalogue, streams, instruction));
        }
        if let Some(limit) = catalogue.strict
            && let Some(reason) = exceeds_strict_limit(catalogue, instruction, &strategy, limit)
        {
            return Err(reason);
        }
        let operands = self.redistribute_operands(catalogue, streams, instruction, &strategy);
        let plan = LocalParts { instruction, rule: &rule, strategy: &strategy, metas, meta };
        plan.emit(catalogue, streams, &operands, name);
        record(catalogue, instruction, &operands, metas, &strategy.output, meta);
        let asked = (from_nothing || is_place(instruction.operation))
            && wanted.is_some_and(|wanted| wanted == strategy.output);
        let stays = stays_at.is_some_and(|layout| *layout == strategy.output);
        let combined = reduce_scatters(catalogue, instruction, &strategy);
        let layout = Arc::new(strategy.output);
        for (name, meta) in instruction.outputs() {
            catalogue.put(name, meta, Arc::clone(&layout), name);
            catalogue.set_provenance(name, Provenance { placed: asked || stays, combined });
        }
        for operand in instruction.operands.iter().filter_map(Operand::tensor) {
            catalogue.drop_combined(*operand, streams);
        }
        catalogue.limit_copies(streams);
        Ok(Ok(()))
    }

    /// Returns the mesh that computes an instruction: its scope's, or else an operand's; of
    /// several, the one with the most slots, then of the largest operand.
    fn mesh_for(
        &mut self,
        catalogue: &mut Catalogue,
        instruction: &Instruction,
        wanted: Option<&ResolvedPlacement>,
    ) -> Arc<Mesh> {
        let operands = || instruction.operands.iter().filter_map(Operand::tensor);
        if let Some(wanted) = wanted {
            // A view stays where its operand is.
            let stays = is_view(instruction.operation)
                && operands().all(|id| {
                    catalogue.placed(*id).copies.iter().all(|copy| copy.layout.mesh != wanted.mesh)
                });
            if !stays {
                return Arc::clone(&wanted.mesh);
            }
        }
        let mut best: Option<((usize, usize), &Arc<Mesh>)> = None;
        for id in operands() {
            let found = catalogue.placed(*id);
            for copy in &found.copies {
                let weight = (copy.layout.mesh.size(), found.meta.bytes());
                if best.as_ref().is_none_or(|(most, _)| weight > *most) {
                    best = Some((weight, &copy.layout.mesh));
                }
            }
        }
        match best {
            Some((_, mesh)) => Arc::clone(mesh),
            None => Arc::clone(&catalogue.home(&mut self.meshes).mesh),
        }
    }

    /// Returns the operands in the layouts of a strategy, redistributed where needed.
    fn redistribute_operands(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        strategy: &Strategy,
    ) -> SmallVec<[Option<TensorCopy>; 3]> {
        let scope = match &catalogue.recorder {
            Some(_) => catalogue.signal(instruction.signal).map(|s| s.name().to_string()),
            None => None,
        };
        instruction
            .operands
            .iter()
            .zip(&strategy.operands)
            .enumerate()
            .map(|(operand, (id, layout))| {
                let (id, layout) = (id.tensor()?, layout.as_ref()?);
                let (operation, scope) = (instruction.operation.name, scope.as_deref());
                let reason = Reason::Needed { operation, operand, scope };
                Some(self.copy_in_layout(
                    catalogue,
                    streams,
                    *id,
                    layout,
                    instruction.source,
                    reason,
                ))
            })
            .collect()
    }

    /// Returns a tensor's copy in a layout: an existing one, or else a new one, made by the
    /// cheapest redistribution and kept for reuse.
    pub(super) fn copy_in_layout(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        id: TensorId,
        layout: &Layout,
        line: SourceId,
        reason: Reason,
    ) -> TensorCopy {
        let found = catalogue.placed(id);
        if let Some(copy) = found.copies.iter().find(|copy| *copy.layout == *layout) {
            return copy.clone();
        }
        let meta = found.meta;
        let cheapest = found
            .copies
            .iter()
            .filter_map(|copy| Some((cost(&copy.layout, layout, meta)?, copy)))
            .min_by_key(|(bytes, _)| *bytes)
            .map(|(_, copy)| copy.clone());
        let mut copy = cheapest.expect("strategies use only reachable layouts");
        let steps = stages(&copy.layout, layout, meta).expect("it has a cost");
        for (index, step) in steps.iter().enumerate() {
            self.stats.redistributions += u64::from(step.bytes > 0);
            self.stats.bytes += step.bytes;
            if let Some(recorder) = &mut catalogue.recorder {
                recorder.add_redistribution(&catalogue.slots, meta, &copy.layout, step, reason);
            }
            let next = emit::stage(catalogue, streams, &copy, step, meta, line);
            if index > 0 {
                super::catalogue::free_copy(&copy, streams);
            }
            copy = next;
        }
        catalogue.add_copy(id, copy.clone());
        copy
    }
}

/// The inputs to the planning of an instruction.
struct PlanningInput {
    metas: OperandMetas,
    meta: Meta,
    /// The placement that its scope asks for.
    wanted: Option<ResolvedPlacement>,
}

/// Returns whether the operation commutes with summing its partial operands, the bits of `set`: the
/// output's dtype must be theirs or a longer float, and scalars must be finite (a partial 0 times
/// infinity is NaN).
fn sums_exactly(set: u64, operands: &OperandMetas, output: Meta) -> bool {
    operands.iter().enumerate().all(|(index, operand)| match operand {
        Operand::Scalar(scalar) => scalar.as_f64().is_finite(),
        Operand::Tensor(meta) => {
            let widens = meta.dtype.is_float()
                && output.dtype.is_float()
                && output.dtype.size() > meta.dtype.size();
            set >> index & 1 == 0 || meta.dtype == output.dtype || widens
        }
    })
}

#[allow(clippy::too_many_arguments, reason = "the inputs of one choice")]
fn choose_strategy(
    catalogue: &Catalogue,
    instruction: &Instruction,
    rule: &Rule,
    metas: &OperandMetas,
    output: Meta,
    mesh: &Arc<Mesh>,
    wanted: Option<&Layout>,
    stays_at: Option<&Layout>,
) -> Strategy {
    let operands: SmallVec<[Option<OperandLayouts>; 3]> = instruction
        .operands
        .iter()
        .zip(metas)
        .map(|(operand, meta)| {
            let (id, meta) = (operand.tensor()?, *meta.tensor()?);
            let layouts = catalogue.placed(*id).copies.iter().map(|copy| &*copy.layout).collect();
            Some(OperandLayouts { meta, layouts })
        })
        .collect();
    let (operation, operands) = (instruction.operation, &operands[..]);
    Candidates { operation, rule, operands, output, mesh, wanted, placed: stays_at }.best()
}

/// Records an instruction, if an explanation is being recorded.
fn record(
    catalogue: &mut Catalogue,
    instruction: &Instruction,
    operands: &[Option<TensorCopy>],
    metas: &OperandMetas,
    output: &Layout,
    meta: Meta,
) {
    let Some(recorder) = &mut catalogue.recorder else { return };
    let slots = &catalogue.slots;
    let operands = operands
        .iter()
        .zip(metas)
        .filter_map(|(copy, meta)| Some(placed(slots, *meta.tensor()?, &copy.as_ref()?.layout)));
    recorder.step(instruction, operands.collect(), placed(slots, meta, output));
}

/// Marks the outputs of an instruction as failed.
pub(super) fn fail_outputs(
    catalogue: &mut Catalogue,
    instruction: &Instruction,
    failure: &Arc<Failure>,
) {
    for (id, _) in instruction.outputs() {
        catalogue.fail(id, Arc::clone(failure));
    }
}

/// Returns the shapes and dtypes of an instruction's operands, or the failure of one.
fn operand_metas(
    catalogue: &Catalogue,
    instruction: &Instruction,
) -> Result<OperandMetas, Arc<Failure>> {
    instruction
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Scalar(scalar) => Ok(Operand::Scalar(*scalar)),
            Operand::Tensor(id) => catalogue.get(*id).map(|found| Operand::Tensor(found.meta)),
        })
        .collect()
}

/// Returns the failure of an instruction, for this reason.
pub(super) fn failure(instruction: &Instruction, reason: String) -> Arc<Failure> {
    Arc::new(Failure::new(
        instruction.title().into_owned(),
        reason,
        String::new(),
        instruction.source,
    ))
}
