//! Runs the parts of iterations, each as one plan.
//!
//! A part that cannot be run as a plan, or whose plan fails, is run operation by operation from
//! the same inputs: the numbers are the same, and each failure is attributed to its operation.

use std::time::Duration;

use gt_ir::instruction::Attribute;
use gt_ir::operation::Body;
use gt_ir::ops::commit::{RESULT, is_commit};
use gt_ir::ops::create::FULL;
use gt_ir::template::{Argument, Name, RunStep, Step, TemplateBuilder, Values};
use gt_ir::trace::{Input, Trace};
use gt_ir::{Meta, Operand, Scalar, Template, TensorId, TransferId, WorkerCommand};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::Device;
use super::launch::PartRun;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::lane::call::{GivenTensor, Launch};
use crate::lane::iteration::{Bound, PreparedPart, TemplatePart, parts};
use crate::memory::dying;
use crate::plan::Plan;

/// The iteration whose part is to be run.
pub(crate) struct AtHand<'a> {
    pub template: &'a Template,
    pub bound: &'a Bound,
    /// Its template's number; `None` for a batch.
    pub number: Option<u32>,
    /// Whether the user requested compilation.
    pub compile: bool,
    /// How long to wait for a compiler.
    pub patience: Duration,
}

impl<E: Engine> Device<E> {
    /// Runs a part without exchanges as a plan, if that is possible.
    pub fn run_part(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        at_hand: &AtHand,
        part: &mut TemplatePart,
    ) -> PartRun {
        if part.is_plain || self.options.check_nan {
            return PartRun::Refused;
        }
        let AtHand { bound, number, patience, .. } = *at_hand;
        let there = |name: &Name| lane.store.meta(bound.tensor(*name));
        let metas: Option<Vec<Meta>> = part.needs.iter().map(there).collect();
        let Some(metas) = metas else { return PartRun::Refused };
        if !self.make_ready(at_hand, part, metas) {
            return PartRun::Refused;
        }
        let Some(ready) = &part.ready else { return PartRun::Refused };
        let warmup = if at_hand.compile { 0 } else { self.engine.warmup() };
        let is_warm = lane.warmth.of(ready.plan) >= warmup;
        if is_warm && !self.programs.settle(&mut self.engine, ready.program, patience) {
            return PartRun::Compiling;
        }
        lane.warmth.rise(ready.plan);
        if self.events.is_on() {
            let kept = part.kept.iter().map(|(name, ..)| name);
            let first = kept.chain(&part.needs).next();
            let first = first.map_or(TensorId(0), |name| bound.tensor(*name));
            self.emit_part(first, number);
        }
        // Borrowed inputs stay until the end: outputs may be views of them.
        let mut lent: SmallVec<[TensorId; 4]> = SmallVec::new();
        let mut given: Vec<GivenTensor> = Vec::with_capacity(part.needs.len());
        for (name, meta) in part.needs.iter().zip(&ready.metas) {
            let (id, mut dies) = (bound.tensor(*name), part.dying.contains(name));
            if dies && lane.store.shared.borrowed.has(id) {
                lent.push(id);
                dies = false;
            }
            given.push(GivenTensor { id, meta: *meta, dies });
        }
        let numbers = ready.numbers.iter().map(|(slot, added)| match bound.number(*slot) {
            Scalar::Int(value) => Scalar::Int(value.wrapping_add(*added)),
            other => other,
        });
        let kept = part.kept.iter().map(|kept| (bound.tensor(kept.0), kept.1, kept.2));
        let launch = Launch { program: ready.program, is_warm, operations: part.operations };
        let freed = part.freed.iter().map(|name| bound.tensor(*name)).chain(lent);
        self.launch(lane, launch, given, numbers, kept, freed)
    }

    /// Prepares a part for operands with these metas, unless it is prepared; returns whether it is.
    fn make_ready(&mut self, at_hand: &AtHand, part: &mut TemplatePart, metas: Vec<Meta>) -> bool {
        let AtHand { template, bound, .. } = *at_hand;
        let steps = &template.steps[part.steps.clone()];
        let structure = part.structure.get_or_insert_with(|| structure(steps, bound));
        structure.retain(|(slot, value)| bound.number(*slot).same_bits(*value));
        let count = structure.len();
        let fits = |ready: &PreparedPart| {
            ready.structure == count
                && ready.metas == metas
                && ready.numbers.iter().zip(&ready.kinds).all(|((slot, _), kind)| {
                    std::mem::discriminant(&bound.number(*slot)) == std::mem::discriminant(kind)
                })
        };
        if part.ready.as_ref().is_some_and(fits)
            && part.ready.as_ref().is_some_and(|ready| self.programs.has(ready.program))
        {
            return true;
        }
        part.ready = None;
        let Some((mut ready, mut plan)) = self.plan(steps, bound, part, metas) else {
            part.is_plain = true;
            return false;
        };
        plan.compile = at_hand.compile;
        let Some((program, plan)) = self.prepare(plan) else {
            part.is_plain = true;
            return false;
        };
        (ready.program, ready.plan) = (program, plan);
        part.ready = Some(ready);
        true
    }

    /// The plan of a part; `None` if it cannot be run as one.
    fn plan(
        &self,
        steps: &[Step],
        bound: &Bound,
        part: &TemplatePart,
        metas: Vec<Meta>,
    ) -> Option<(PreparedPart, Plan)> {
        let structure = part.structure.as_deref().unwrap_or_default();
        let fixed: FxHashMap<u32, Scalar> = structure.iter().copied().collect();
        let wanted = wanted(steps, part);
        let mut numbers: Vec<(u32, i64)> = Vec::new();
        let mut places: FxHashMap<(u32, i64), u32> = FxHashMap::default();
        let mut number = |slot: u32, added: i64| {
            let next = numbers.len() as u32;
            *places.entry((slot, added)).or_insert_with(|| {
                numbers.push((slot, added));
                next
            })
        };
        // Numbers are inputs of the plan, so they are collected before its steps are built.
        let mut given: Vec<(SmallVec<[Option<u32>; 3]>, SmallVec<[u32; 2]>)> = Vec::new();
        for step in wanted.iter().map(|index| &steps[*index]) {
            let Step::Run(step) = step else { continue };
            let operands = step.operands.iter().map(|argument| match argument {
                Argument::Number(slot) if !fixed.contains_key(slot) => Some(number(*slot, 0)),
                _ => None,
            });
            let operands = operands.collect();
            let varying = match &step.varying {
                Some(varying) => {
                    let slots = (varying.first..).zip(&varying.added);
                    // An attribute varies in all elements or in none.
                    if slots.clone().all(|(slot, _)| fixed.contains_key(&slot)) {
                        SmallVec::new()
                    } else {
                        slots.map(|(slot, added)| number(slot, *added)).collect()
                    }
                }
                None => SmallVec::new(),
            };
            given.push((operands, varying));
        }
        let kinds: Vec<Scalar> = numbers.iter().map(|(slot, _)| bound.number(*slot)).collect();
        let tensors = metas.iter().copied().map(Input::Tensor);
        let inputs = tensors.chain(kinds.iter().copied().map(Input::Number)).collect();
        let mut trace = Trace::new(inputs);
        let first_number = part.needs.len() as u32;
        let mut values: FxHashMap<Name, u32> = FxHashMap::default();
        values.extend(part.needs.iter().copied().zip(0..));
        let lowers = |operation| self.engine.lowers(operation);
        let runs = wanted.iter().filter_map(|index| match &steps[*index] {
            Step::Run(step) => Some(step),
            _ => None,
        });
        for (step, (numbers, varying)) in runs.zip(given) {
            let is_expanded =
                matches!(step.operation.body, Body::Composite(_)) && !lowers(step.operation);
            let takes_numbers = is_expanded && !step.operation.open_numbers;
            if takes_numbers && numbers.iter().any(Option::is_some) {
                // The body of the composite needs the number's value, so it cannot be an input.
                return None;
            }
            let mut operands = SmallVec::new();
            for (argument, number) in step.operands.iter().zip(numbers) {
                operands.push(match (argument, number) {
                    (Argument::Tensor(_), _) if is_commit(step.operation) => continue,
                    (Argument::Tensor(name), _) => Operand::Tensor(*values.get(name)?),
                    (_, Some(number)) => Operand::Tensor(first_number + number),
                    (Argument::Number(slot), None) => Operand::Scalar(bound.number(*slot)),
                    (Argument::Constant(scalar), None) => Operand::Scalar(*scalar),
                });
            }
            let varying = varying.into_iter().map(|number| first_number + number).collect();
            let attributes = step.attributes(bound);
            let value = if is_commit(step.operation) {
                let attributes = smallvec![Attribute::dims(&[]), Attribute::DType(RESULT.dtype)];
                let zero = smallvec![Operand::Scalar(Scalar::Float(0.0))];
                trace.push(&lowers, &FULL, zero, attributes, varying).ok()?
            } else {
                trace.push(&lowers, step.operation, operands, attributes, varying).ok()?
            };
            for (index, (name, meta)) in made_by(step).enumerate() {
                let value = value + index as u32;
                // A wrong declaration fails when the instruction is run by itself.
                if (value as usize) >= trace.values() || *trace.meta(value).tensor()? != meta {
                    return None;
                }
                values.insert(name, value);
            }
        }
        for (name, ..) in &part.kept {
            trace.outputs.push(*values.get(name)?);
        }
        let mut plan = Plan::new(trace);
        for (dies, name) in plan.dies.iter_mut().zip(&part.needs) {
            *dies = part.dying.contains(name);
        }
        let structure = structure.len();
        Some((PreparedPart { program: 0, plan: 0, metas, numbers, kinds, structure }, plan))
    }

    /// Runs instructions and frees one by one.
    pub fn run_plainly(&mut self, lane: &mut Lane<E::Tensor>, commands: &[WorkerCommand]) {
        let pausable_from = self.pausable_from.take();
        for (index, command) in commands.iter().enumerate() {
            if self.events.is_on() {
                self.emit_command(command);
            }
            match command {
                WorkerCommand::Run(instruction) => {
                    self.run(lane, instruction, dying(&commands[index + 1..]));
                }
                WorkerCommand::Free(id) => self.free(lane, *id),
                _ => unreachable!("a part is of instructions and frees"),
            }
        }
        self.pausable_from = pausable_from;
    }

    /// Runs the leading instructions and frees of a list as one plan, up to the batch size; returns
    /// the number of commands that are complete. None are while they wait for their compiler, or
    /// are the lane's call.
    pub fn run_batch(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        commands: &[WorkerCommand],
        is_skipped: impl Fn(usize) -> bool,
        patience: Duration,
    ) -> usize {
        let mut runs = 0;
        let belongs = |(index, command): &(usize, &WorkerCommand)| match command {
            WorkerCommand::Run(_) => {
                runs += 1;
                runs <= self.options.batch_size && !is_skipped(*index)
            }
            WorkerCommand::Free(_) => true,
            _ => false,
        };
        let count = commands.iter().enumerate().take_while(belongs).count();
        let commands = &commands[..count];
        match self.run_as_plan(lane, commands, patience).unwrap_or(PartRun::Refused) {
            PartRun::Done => {}
            PartRun::Compiling => return 0,
            PartRun::Begun => {
                lane.call.iter_mut().for_each(|call| call.stands_for(count));
                return 0;
            }
            PartRun::Refused => self.run_plainly(lane, commands),
        }
        count
    }

    /// Runs instructions and frees as one plan; `None` if they make none.
    fn run_as_plan(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        commands: &[WorkerCommand],
        patience: Duration,
    ) -> Option<PartRun> {
        let names = || commands.iter().filter_map(made).flatten();
        let (first, last) = (names().min()?, names().max()?);
        let width = u32::try_from(last - first + 1).ok()?;
        let base = TensorId(first);
        let mut builder = TemplateBuilder::new([base, base], [width, 0], TransferId(0));
        for command in commands {
            let step = match command {
                WorkerCommand::Run(instruction) => {
                    builder.step_with_slots(instruction).map(Step::Run)
                }
                WorkerCommand::Free(id) => Some(Step::Free(builder.name(*id))),
                _ => None,
            };
            builder.push(step?);
        }
        let definition = builder.finish(0, false);
        let (template, bound) = (&definition.template, Bound::new(definition.start, TransferId(0)));
        let mut parts = parts(template);
        let [part] = parts.as_mut_slice() else { return None };
        let at_hand = AtHand { template, bound: &bound, number: None, compile: false, patience };
        Some(self.run_part(lane, &at_hand, part))
    }
}

/// The tensors that a command makes: the first and the last.
fn made(command: &WorkerCommand) -> Option<[u64; 2]> {
    match command {
        WorkerCommand::Run(instruction) => {
            let further = instruction.results.len().saturating_sub(1) as u64;
            Some([instruction.output.0, instruction.output.after(further).0])
        }
        _ => None,
    }
}

/// The tensors that a step makes.
fn made_by(step: &RunStep) -> impl Iterator<Item = (Name, Meta)> {
    let name = |index: u32| match step.output {
        Name::Own(first) => Name::Own(first + index),
        Name::Made(first) => Name::Made(first + index),
        outside @ Name::Outside(_) => outside,
    };
    (0..).map(name).zip(step.results.iter().copied())
}

/// The indices of the steps that the kept results depend on.
fn wanted(steps: &[Step], part: &TemplatePart) -> Vec<usize> {
    let mut needed: FxHashSet<Name> = part.kept.iter().map(|(name, ..)| *name).collect();
    let mut wanted = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate().rev() {
        let Step::Run(run) = step else { continue };
        if made_by(run).any(|(name, _)| needed.contains(&name)) {
            // A commit needs no values: a plan that succeeds has no failure in it.
            if !is_commit(run.operation) {
                needed.extend(step.reads());
            }
            wanted.push(index);
        }
    }
    wanted.reverse();
    wanted
}

/// Returns the numbers that are better constants for engines: the positions of slices, and fill
/// values.
fn structure(steps: &[Step], bound: &Bound) -> Vec<(u32, Scalar)> {
    let mut slots = Vec::new();
    for step in steps {
        let Step::Run(step) = step else { continue };
        if let Some(varying) = &step.varying {
            slots.extend((varying.first..).take(varying.added.len()));
        }
        if step.operation.id == FULL.id {
            slots.extend(step.operands.iter().filter_map(|argument| match argument {
                Argument::Number(slot) => Some(*slot),
                _ => None,
            }));
        }
    }
    slots.into_iter().map(|slot| (slot, bound.number(slot))).collect()
}
