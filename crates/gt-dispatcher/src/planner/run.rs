//! Plans one instruction: chooses where it runs, moves its operands, and emits each slot's part.

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
use super::catalogue::{Catalogue, Metas, Provenance, TensorCopy};
use super::emit;
use super::explain::{Reason, placed};
use super::in_place::{Operands, aligned, run_in_place, single_place};
use super::judge::{adds_up, gathers, unplanned, updated};
use super::local::Local;
use super::moves::{cost, stages};
use super::scope::Wanted;
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
                Operands::Together { layout, names, provenance } => {
                    run_in_place(catalogue, streams, instruction, layout, &names, provenance);
                    return Ok(());
                }
                Operands::None if self.automatic(catalogue, instruction.meta()).is_none() => {
                    let layout = catalogue.home(&mut self.meshes);
                    let provenance = Provenance::default();
                    run_in_place(catalogue, streams, instruction, layout, &[], provenance);
                    return Ok(());
                }
                Operands::Failed(failure) if !is_commit(instruction.operation) => {
                    fail_outputs(catalogue, &instruction, &failure);
                    return Ok(());
                }
                Operands::Failed(_) | Operands::None | Operands::Apart => {}
            }
        }
        if let Some(parts) = instruction.commit() {
            self.commit(catalogue, streams, &instruction, &parts);
            return Ok(());
        }
        match self.place(catalogue, &instruction) {
            Ok((_, Operands::Together { layout, names, provenance })) => {
                run_in_place(catalogue, streams, instruction, layout, &names, provenance);
            }
            Ok((Wants { metas, meta, wanted }, _)) => {
                let of = (&instruction, &metas, meta);
                match self.run_anywhere(catalogue, streams, of, wanted) {
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

    /// The metas and placement that an instruction is planned by; and its operands' common layout,
    /// if it can run in place.
    ///
    /// # Errors
    /// The instruction's failure.
    fn place(
        &mut self,
        catalogue: &mut Catalogue,
        instruction: &Instruction,
    ) -> Result<(Wants, Operands), Arc<Failure>> {
        let metas = operand_metas(catalogue, instruction)?;
        let fail = |reason| failure(instruction, reason);
        instruction.check(&metas).map_err(fail)?;
        let meta = instruction.meta();
        let from_nothing = instruction.reads().next().is_none();
        let wanted = match self.wanted(catalogue, instruction.signal).map_err(fail)? {
            None if from_nothing => self.automatic(catalogue, meta),
            wanted => wanted,
        };
        let mut operands = Operands::Apart;
        if wanted.is_none() {
            operands = single_place(catalogue, instruction);
        }
        if !matches!(operands, Operands::Together { .. }) {
            operands = aligned(catalogue, instruction, meta, wanted.as_ref());
        }
        Ok((Wants { metas, meta, wanted }, operands))
    }

    /// Plans an instruction by a strategy, on the mesh of its scope or of its operands.
    ///
    /// # Errors
    /// The reason that the instruction fails; the inner error is one that no valid client causes.
    fn run_anywhere(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        (instruction, metas, meta): (&Instruction, &Metas, Meta),
        wanted: Option<Wanted>,
    ) -> Result<Result<(), String>, String> {
        let name = instruction.output;
        let from_nothing = instruction.reads().next().is_none();
        let mesh = self.mesh_for(catalogue, instruction, wanted.as_ref());
        if instruction.operation.id == slice::SLICE.id
            && self.slice_in_place(catalogue, streams, instruction, meta, &mesh, name)
        {
            return Ok(Ok(()));
        }
        let stays_at = updated(catalogue, instruction, meta, &mesh);
        let wanted = wanted.filter(|wanted| wanted.mesh == mesh).map(|wanted| wanted.layout(meta));
        let call = Call {
            operation: instruction.operation.name,
            operands: metas,
            attributes: &instruction.attributes,
        };
        let mut rule = (instruction.operation.sharding)(&call, &meta);
        rule.linear.retain(|set| sums_exactly(*set, metas, meta));
        let strategy = choose(
            catalogue,
            instruction,
            &rule,
            metas,
            meta,
            &mesh,
            wanted.as_ref(),
            stays_at.as_deref(),
        );
        // By its steps, less is moved, or an update keeps the layout of what it updates.
        if let Body::Composite(body) = instruction.operation.body
            && !is_place(instruction.operation)
            && (gathers(catalogue, instruction, &strategy)
                || stays_at.as_deref().is_some_and(|layout| *layout != strategy.output))
        {
            return Ok(self.expand(catalogue, streams, instruction, body));
        }
        if let Some(limit) = catalogue.strict
            && let Some(reason) = unplanned(catalogue, instruction, &strategy, limit)
        {
            return Err(reason);
        }
        let operands = self.bring(catalogue, streams, instruction, &strategy);
        let plan = Local { instruction, rule: &rule, strategy: &strategy, metas, meta };
        plan.emit(catalogue, streams, &operands, name);
        record(catalogue, instruction, &operands, metas, &strategy.output, meta);
        let asked = (from_nothing || is_place(instruction.operation))
            && wanted.is_some_and(|wanted| wanted == strategy.output);
        let stays = stays_at.is_some_and(|layout| *layout == strategy.output);
        let combined = adds_up(catalogue, instruction, &strategy);
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

    /// The mesh that computes an instruction: its scope's, or else an operand's; of several, the
    /// one with the most slots, then of the largest operand.
    fn mesh_for(
        &mut self,
        catalogue: &mut Catalogue,
        instruction: &Instruction,
        wanted: Option<&Wanted>,
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

    /// The operands in the layouts of a strategy, moved where needed.
    fn bring(
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
                Some(self.copy_in(catalogue, streams, *id, layout, instruction.source, reason))
            })
            .collect()
    }

    /// A tensor's copy in a layout: an existing one, or else a new one, made the cheapest way and
    /// kept for reuse.
    pub(super) fn copy_in(
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
        let mut copy = cheapest.expect("strategies ask only for what can be made");
        let steps = stages(&copy.layout, layout, meta).expect("it has a cost");
        for (index, step) in steps.iter().enumerate() {
            self.stats.moves += u64::from(step.bytes > 0);
            self.stats.bytes += step.bytes;
            if let Some(recorder) = &mut catalogue.recorder {
                recorder.moved(&catalogue.slots, meta, &copy.layout, step, reason);
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

/// What an instruction is planned by.
struct Wants {
    metas: Metas,
    meta: Meta,
    /// The placement that its scope asks for.
    wanted: Option<Wanted>,
}

/// Whether the operation commutes with summing its partial operands, the bits of `set`: the
/// output's dtype must be theirs or a wider float, and scalars must be finite (a partial 0 times
/// infinity is NaN).
fn sums_exactly(set: u64, operands: &Metas, output: Meta) -> bool {
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

#[allow(clippy::too_many_arguments, reason = "the parts of one question")]
fn choose(
    catalogue: &Catalogue,
    instruction: &Instruction,
    rule: &Rule,
    metas: &Metas,
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
    metas: &Metas,
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

pub(super) fn fail_outputs(
    catalogue: &mut Catalogue,
    instruction: &Instruction,
    failure: &Arc<Failure>,
) {
    for (id, _) in instruction.outputs() {
        catalogue.fail(id, Arc::clone(failure));
    }
}

/// Shapes and dtypes of an instruction's operands, or the failure of one.
fn operand_metas(catalogue: &Catalogue, instruction: &Instruction) -> Result<Metas, Arc<Failure>> {
    instruction
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Scalar(scalar) => Ok(Operand::Scalar(*scalar)),
            Operand::Tensor(id) => catalogue.get(*id).map(|found| Operand::Tensor(found.meta)),
        })
        .collect()
}

pub(super) fn failure(instruction: &Instruction, reason: String) -> Arc<Failure> {
    Arc::new(Failure::new(
        instruction.title().into_owned(),
        reason,
        String::new(),
        instruction.source,
    ))
}
