//! One instruction: where it is computed, and what is moved for it.

use std::sync::Arc;

use gt_ir::instruction::Instruction;
use gt_ir::message::Failure;
use gt_ir::operation::{Body, Call, Family};
use gt_ir::ops::shape;
use gt_ir::sharding::Rule;
use gt_ir::{Command, Meta, Operand, SourceId, TensorId};
use smallvec::SmallVec;

use super::Planner;
use super::emit;
use super::explain::{Reason, placed};
use super::layout::{Layout, Mesh};
use super::local::Local;
use super::moves::{cost, stages};
use super::scope::Wanted;
use super::strategy::{Known, Question, Strategy, is_place, is_view};
use super::streams::Streams;
use super::tensors::{Copy, Metas, Origin, Tensors};

impl Planner {
    /// Plans an instruction of a session and puts the workers' parts onto their streams.
    ///
    /// # Errors
    /// The instruction names what no valid client would.
    pub(super) fn run(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        instruction: Instruction,
    ) -> Result<(), String> {
        let Some(name) = instruction.output.qualify(tensors.session) else {
            return Err(format!("tensor number {} is out of range", instruction.output));
        };
        let metas = match operand_metas(tensors, &instruction) {
            Ok(metas) => metas,
            Err(failure) => {
                tensors.fail(instruction.output, failure);
                return Ok(());
            }
        };
        let meta = match instruction.operation.check(&metas, &instruction.attributes) {
            Ok(meta) => meta,
            Err(error) => {
                tensors.fail(instruction.output, failure(&instruction, error.to_string()));
                return Ok(());
            }
        };
        let from_nothing = instruction.operands.iter().all(|operand| operand.tensor().is_none());
        let wanted = match self.wanted(tensors, instruction.signal) {
            Ok(None) if from_nothing => self.automatic(meta),
            Ok(wanted) => wanted,
            Err(reason) => {
                tensors.fail(instruction.output, failure(&instruction, reason));
                return Ok(());
            }
        };
        if wanted.is_none()
            && let Some(layout) = only_place(tensors, &instruction)
        {
            self.run_as_it_is(tensors, streams, instruction, meta, layout, name);
            return Ok(());
        }
        if let Some(layout) = aligned(tensors, &instruction, meta, wanted.as_ref()) {
            self.run_as_it_is(tensors, streams, instruction, meta, layout, name);
            return Ok(());
        }
        let mesh = self.mesh_for(tensors, &instruction, wanted.as_ref());
        if instruction.operation.id == shape::SLICE.id
            && self.slice_in_place(tensors, streams, &instruction, meta, &mesh, name)
        {
            return Ok(());
        }
        let placed = updated(tensors, &instruction, meta, &mesh);
        let wanted = wanted.filter(|wanted| wanted.mesh == mesh).map(|wanted| wanted.layout(meta));
        let call = Call {
            operation: instruction.operation.name,
            operands: &metas,
            attributes: &instruction.attributes,
        };
        let mut rule = (instruction.operation.sharding)(&call, &meta);
        rule.linear.retain(|set| sums_exactly(*set, &metas, meta));
        let strategy = self.choose(
            tensors,
            &instruction,
            &rule,
            &metas,
            meta,
            &mesh,
            wanted.as_ref(),
            placed.as_deref(),
        );
        if let Body::Composite(body) = instruction.operation.body
            && !is_place(instruction.operation)
            && gathers(tensors, &instruction, &strategy)
        {
            return self.expand(tensors, streams, &instruction, body);
        }
        if let Some(limit) = tensors.strict
            && let Some(reason) = unplanned(tensors, &instruction, &strategy, limit)
        {
            tensors.fail(instruction.output, failure(&instruction, reason));
            return Ok(());
        }
        let operands = self.bring(tensors, streams, &instruction, &strategy);
        let plan = Local {
            instruction: &instruction,
            rule: &rule,
            strategy: &strategy,
            metas: &metas,
            meta,
        };
        plan.emit(tensors, streams, &operands, name);
        self.note(tensors, &instruction, &operands, &metas, &strategy.output, meta);
        let asked = (from_nothing || is_place(instruction.operation))
            && wanted.is_some_and(|wanted| wanted == strategy.output);
        let stays = placed.is_some_and(|placed| *placed == strategy.output);
        let combined = adds_up(tensors, &instruction, &strategy);
        tensors.put(instruction.output, meta, Arc::new(strategy.output), name);
        tensors.set_origin(instruction.output, Origin { placed: asked || stays, combined });
        for operand in instruction.operands.iter().filter_map(Operand::tensor) {
            tensors.drop_combined(*operand, streams);
        }
        tensors.limit_copies(streams);
        Ok(())
    }

    /// Notes an instruction for who wants it explained.
    fn note(
        &self,
        tensors: &mut Tensors,
        instruction: &Instruction,
        operands: &[Option<Copy>],
        metas: &Metas,
        output: &Layout,
        meta: Meta,
    ) {
        let Some(notes) = &mut tensors.notes else { return };
        let operands = operands.iter().zip(metas).filter_map(|(copy, meta)| {
            Some(placed(&self.cluster, *meta.tensor()?, &copy.as_ref()?.layout))
        });
        notes.step(instruction, operands.collect(), placed(&self.cluster, meta, output));
    }

    /// Everything is on one worker, or elementwise on operands that lie alike: each worker
    /// computes its part as the whole is computed.
    fn run_as_it_is(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        mut instruction: Instruction,
        meta: Meta,
        layout: Arc<Layout>,
        name: TensorId,
    ) {
        if tensors.notes.is_some() {
            self.note_as_it_is(tensors, &instruction, meta, &layout);
        }
        let output = instruction.output;
        let mut origin: Option<Origin> = None;
        for operand in &mut instruction.operands {
            if let Operand::Tensor(id) = operand {
                let there = tensors.there(*id);
                let placed = origin.map_or(there.origin.placed, |first| first.placed);
                let combined = origin.is_some_and(|first| first.combined) || there.origin.combined;
                origin = Some(Origin { placed, combined });
                *id = there.copies[0].id;
            }
        }
        instruction.output = name;
        for &worker in &layout.mesh.workers {
            streams.push(worker, Command::Run(instruction.clone()));
        }
        tensors.put(output, meta, layout, name);
        if let Some(origin) = origin.filter(|origin| *origin != Origin::default()) {
            tensors.set_origin(output, origin);
        }
    }

    fn note_as_it_is(
        &self,
        tensors: &mut Tensors,
        instruction: &Instruction,
        meta: Meta,
        layout: &Layout,
    ) {
        let operands = instruction.operands.iter().filter_map(Operand::tensor);
        let operands = operands.map(|id| placed(&self.cluster, tensors.there(*id).meta, layout));
        let operands = operands.collect();
        if let Some(notes) = &mut tensors.notes {
            notes.step(instruction, operands, placed(&self.cluster, meta, layout));
        }
    }

    /// The workers that compute an instruction: those of its scope, or else where its operands
    /// are; of several places the one with the most workers, then with the most bytes.
    fn mesh_for(
        &mut self,
        tensors: &Tensors,
        instruction: &Instruction,
        wanted: Option<&Wanted>,
    ) -> Arc<Mesh> {
        let operands = || instruction.operands.iter().filter_map(Operand::tensor);
        if let Some(wanted) = wanted {
            // What only rearranges stays where its operand is.
            let stays = is_view(instruction.operation)
                && operands().all(|id| {
                    tensors.there(*id).copies.iter().all(|copy| copy.layout.mesh != wanted.mesh)
                });
            if !stays {
                return Arc::clone(&wanted.mesh);
            }
        }
        let mut best: Option<((usize, usize), &Arc<Mesh>)> = None;
        for id in operands() {
            let there = tensors.there(*id);
            for copy in &there.copies {
                let weight = (copy.layout.mesh.size(), there.meta.bytes());
                if best.as_ref().is_none_or(|(most, _)| weight > *most) {
                    best = Some((weight, &copy.layout.mesh));
                }
            }
        }
        match best {
            Some((_, mesh)) => Arc::clone(mesh),
            None => Arc::clone(&self.home(tensors).mesh),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of one question")]
    fn choose(
        &self,
        tensors: &Tensors,
        instruction: &Instruction,
        rule: &Rule,
        metas: &Metas,
        output: Meta,
        mesh: &Arc<Mesh>,
        wanted: Option<&Layout>,
        placed: Option<&Layout>,
    ) -> Strategy {
        let known: SmallVec<[Option<Known>; 3]> = instruction
            .operands
            .iter()
            .zip(metas)
            .map(|(operand, meta)| {
                let (id, meta) = (operand.tensor()?, *meta.tensor()?);
                let copies = &tensors.there(*id).copies;
                Some(Known { meta, layouts: copies.iter().map(|copy| &*copy.layout).collect() })
            })
            .collect();
        let operation = instruction.operation;
        Question { operation, rule, operands: &known, output, mesh, wanted, placed }.answer()
    }

    /// The operands in the layouts that a strategy asks for; moves what is not there yet.
    fn bring(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        instruction: &Instruction,
        strategy: &Strategy,
    ) -> SmallVec<[Option<Copy>; 3]> {
        let scope = match &tensors.notes {
            Some(_) => tensors.signals.get(&instruction.signal).map(|s| s.name().to_string()),
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
                Some(self.copy_in(tensors, streams, *id, layout, instruction.source, reason))
            })
            .collect()
    }

    /// A copy of a tensor in a layout: one that is there, or the cheapest to make, which is kept
    /// until the tensor is freed.
    pub(super) fn copy_in(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        id: TensorId,
        layout: &Layout,
        line: SourceId,
        reason: Reason,
    ) -> Copy {
        let there = tensors.there(id);
        if let Some(copy) = there.copies.iter().find(|copy| *copy.layout == *layout) {
            return copy.clone();
        }
        let meta = there.meta;
        let cheapest = there
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
            if let Some(notes) = &mut tensors.notes {
                notes.moved(&self.cluster, meta, &copy.layout, step, reason);
            }
            let fabrics = &self.cluster.fabrics;
            let next = emit::stage(tensors, streams, fabrics, &copy, step, meta, line);
            if index > 0 {
                super::tensors::free_copy(&copy, streams);
            }
            copy = next;
        }
        tensors.add_copy(id, copy.clone());
        copy
    }
}

/// Whether a result from partial sums of these operands (bits) adds up to that of the sums: the
/// dtype must not narrow before, nor widen after they are added, and no number be infinite (0 of
/// one part times infinity is not a number).
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

/// Shapes and dtypes of an instruction's operands, or why one is not there.
fn operand_metas(tensors: &Tensors, instruction: &Instruction) -> Result<Metas, Arc<Failure>> {
    instruction
        .operands
        .iter()
        .map(|operand| match operand {
            Operand::Scalar(scalar) => Ok(Operand::Scalar(*scalar)),
            Operand::Tensor(id) => tensors.get(*id).map(|there| Operand::Tensor(there.meta)),
        })
        .collect()
}

/// The layout of all operands, if that is one and the same worker.
fn only_place(tensors: &Tensors, instruction: &Instruction) -> Option<Arc<Layout>> {
    let mut found: Option<&Arc<Layout>> = None;
    for id in instruction.operands.iter().filter_map(Operand::tensor) {
        let [copy] = tensors.there(*id).copies.as_slice() else { return None };
        match found {
            None if copy.layout.mesh.size() == 1 => found = Some(&copy.layout),
            Some(layout) if layout.mesh == copy.layout.mesh => {}
            _ => return None,
        }
    }
    found.cloned()
}

/// The layout of all operands of an elementwise instruction, if they all have the one of the
/// result: then nothing else is worth a thought. Numbers may stand among them.
fn aligned(
    tensors: &Tensors,
    instruction: &Instruction,
    output: Meta,
    wanted: Option<&Wanted>,
) -> Option<Arc<Layout>> {
    let family = instruction.operation.family;
    if !matches!(family, Family::Unary | Family::Binary | Family::Ternary) {
        return None;
    }
    let mut found: Option<&Arc<Layout>> = None;
    for id in instruction.operands.iter().filter_map(Operand::tensor) {
        let there = tensors.there(*id);
        let [copy] = there.copies.as_slice() else { return None };
        let layout = found.get_or_insert(&copy.layout);
        let same = Arc::ptr_eq(layout, &copy.layout) || *layout == &copy.layout;
        if !same || there.meta.shape != output.shape {
            return None;
        }
    }
    let layout = found?;
    let fits = wanted.is_none_or(|wanted| wanted.mesh == layout.mesh) && !layout.is_partial();
    fits.then(|| Arc::clone(layout))
}

/// Where the first operand of an elementwise instruction was placed, if on this mesh: an update
/// of a tensor is to lie as the tensor.
fn updated(
    tensors: &Tensors,
    instruction: &Instruction,
    output: Meta,
    mesh: &Arc<Mesh>,
) -> Option<Arc<Layout>> {
    let family = instruction.operation.family;
    if !matches!(family, Family::Unary | Family::Binary | Family::Ternary) {
        return None;
    }
    let there = tensors.there(*instruction.operands.first()?.tensor()?);
    let layout = &there.copies[0].layout;
    let stays = there.origin.placed && there.meta.shape == output.shape && layout.mesh == *mesh;
    stays.then(|| Arc::clone(layout))
}

/// Whether a result is cut because partial values are added up that way.
fn adds_up(tensors: &Tensors, instruction: &Instruction, strategy: &Strategy) -> bool {
    let is_cut = |layout: &Layout| layout.placements.iter().any(|p| p.shard_axis().is_some());
    is_cut(&strategy.output)
        && instruction.operands.iter().zip(&strategy.operands).any(|(operand, layout)| {
            let (Some(id), Some(layout)) = (operand.tensor(), layout) else { return false };
            let there = tensors.there(*id);
            let added = there.copies[0].layout.is_partial() && !layout.is_partial();
            is_cut(layout) && (added || there.origin.combined)
        })
}

/// Whether a strategy puts together what is cut on this mesh.
fn gathers(tensors: &Tensors, instruction: &Instruction, strategy: &Strategy) -> bool {
    let mesh = &strategy.output.mesh;
    mesh.size() > 1
        && instruction.operands.iter().zip(&strategy.operands).any(|(operand, layout)| {
            let (Some(id), Some(layout)) = (operand.tensor(), layout) else { return false };
            let there = tensors.there(*id);
            let cut = |copy: &Copy| {
                copy.layout.mesh == *mesh
                    && copy.layout.placements.iter().any(|p| p.shard_axis().is_some())
            };
            let free = |copy: &Copy| cost(&copy.layout, layout, there.meta) == Some(0);
            there.copies.iter().any(cut) && !there.copies.iter().any(free)
        })
}

/// What is wrong with a strategy that moves more than `limit` bytes of a tensor that is cut on
/// the very workers that compute: no scope and no sum asks for that.
fn unplanned(
    tensors: &Tensors,
    instruction: &Instruction,
    strategy: &Strategy,
    limit: u64,
) -> Option<String> {
    instruction.operands.iter().zip(&strategy.operands).find_map(|(operand, layout)| {
        let (id, layout) = (operand.tensor()?, layout.as_ref()?);
        let there = tensors.there(*id);
        let bytes = |copy: &&Copy| cost(&copy.layout, layout, there.meta).unwrap_or(u64::MAX);
        let cheapest = there.copies.iter().min_by_key(bytes)?;
        let moved = bytes(&cheapest);
        let planned = cheapest.layout.mesh != layout.mesh
            || cheapest.layout.is_partial()
            || there.origin.combined;
        (moved > limit && !planned && !is_place(instruction.operation)).then(|| {
            format!(
                "it would move {moved} bytes of a tensor of shape {} from {} to {layout}, more than the {limit} that strict mode allows\n  hint: place it with gt.signal.tensor, or see gt.debug.explain",
                there.meta.shape, cheapest.layout
            )
        })
    })
}

fn failure(instruction: &Instruction, reason: String) -> Arc<Failure> {
    Arc::new(Failure {
        operation: instruction.operation.name.to_string(),
        reason,
        worker: String::new(),
        line: instruction.source,
    })
}
