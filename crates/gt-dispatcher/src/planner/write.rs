//! Writes a planned iteration as a plan: the slots' commands become templates.

use gt_ir::SlotId;
use gt_ir::exchange::Exchange;
use gt_ir::template::{
    Argument, ExchangeStep, IterationPart, Name, RunStep, Step, TemplateBuilder, Values, Varying,
    VaryingSlice, varying_numbers,
};
use gt_ir::{Instruction, Meta, Operand, Scalar, TensorId, WorkerCommand};
use rustc_hash::FxHashMap;

use super::catalogue::{Catalogue, Placed};
use super::iteration::TemplateIteration;
use super::plan::{CopyAfter, IterationPlan, NameAfter, StateBefore, TensorAfter, TensorBefore};

/// Returns the plan of an iteration whose slots' commands are `lists`; `None` if it cannot be
/// expressed as templates. Templates are divided so that a part costs at most `quantum`, if
/// possible.
pub(super) fn write(
    number: u32,
    catalogue: &Catalogue,
    iteration: &TemplateIteration,
    beginning: StateBefore,
    lists: &[(SlotId, Vec<WorkerCommand>)],
    quantum: u64,
) -> Option<IterationPlan> {
    let StateBefore { key, touched, before, same, copies, made, transfer } = beginning;
    let template = &iteration.instance.template;
    let bindings = &iteration.instance.bindings;
    let base = bindings.bases()[0];
    let (next_made, next_transfer) = catalogue.next();
    let width = u32::try_from(next_made.0 - made.0).ok()?;
    let numbers = numbers_of(iteration);
    let mut slots = Vec::new();
    for (tensor, copies) in copies.iter().enumerate() {
        slots.extend((0..copies.len()).map(|copy| (tensor, copy)));
    }
    let writer = TemplateWriter { catalogue, iteration, first_number: numbers.start };
    let mut definitions = Vec::with_capacity(lists.len());
    for (slot, commands) in lists {
        let mut builder = TemplateBuilder::new([base, made], [template.widths[0], width], transfer);
        // All slots bind the same tensors and numbers.
        copies.iter().flatten().for_each(|&id| {
            builder.name(id);
        });
        let registered = builder.outside().len();
        numbers.clone().for_each(|slot| {
            builder.number(bindings.number(slot));
        });
        let mut works = Vec::with_capacity(commands.len());
        let mut metas = SlotMetas::new(*slot, &before, &copies);
        for command in commands {
            let step = writer.step(&mut builder, command)?;
            works.push(metas.work(command));
            builder.push(step);
        }
        if builder.outside().len() != registered || registered != slots.len() {
            return None;
        }
        builder.cut(cuts(&works, quantum));
        definitions.push((*slot, builder.finish(number, iteration.instance.compile)));
    }
    let is_made = |id: TensorId| bindings.is_own(id) || (id >= made && id < next_made);
    let name = |id: TensorId, before: &[TensorId]| {
        if let Some(index) = before.iter().position(|copy| *copy == id) {
            return Some(NameAfter::Kept(index));
        }
        is_made(id).then(|| match bindings.is_own(id) {
            true => NameAfter::Named(Name::Own((id.0 - base.0) as u32)),
            false => NameAfter::Named(Name::Made((id.0 - made.0) as u32)),
        })
    };
    let after = |placed: &Placed, before: &[TensorId]| {
        let copies = placed.copies.iter().map(|copy| {
            let (layout, name) = (copy.layout.clone(), name(copy.id, before)?);
            Some(CopyAfter { layout, name, is_extra: copy.made != 0 })
        });
        let (meta, provenance) = (placed.meta, placed.provenance);
        Some(TensorAfter { meta, provenance, copies: copies.collect::<Option<_>>()? })
    };
    let mut changed = Vec::new();
    for (((name, id), before), copies) in touched.iter().zip(&before).zip(&copies) {
        match catalogue.get(*id) {
            Ok(placed) => {
                let same_copies = placed.copies.iter().map(|copy| &copy.id).eq(copies);
                if !same_copies || !before.fits(placed) {
                    changed.push((*name, Some(after(placed, copies)?)));
                }
            }
            Err(_) if catalogue.failure(*id).is_some() => return None,
            Err(_) => changed.push((*name, None)),
        }
    }
    let IterationPart { first, last, .. } = iteration.invocation.part;
    let mut results = Vec::new();
    for step in &template.steps[first as usize..last as usize] {
        let Step::Run(_) = step else { continue };
        for (name, _) in step.makes() {
            let Name::Own(place) = name else { return None };
            match catalogue.get(bindings.tensor(name)) {
                Ok(placed) => results.push((place, after(placed, &[])?)),
                Err(_) if catalogue.failure(bindings.tensor(name)).is_some() => return None,
                Err(_) => {}
            }
        }
    }
    let weight = definitions.iter().map(|(_, of)| of.template.len()).max().unwrap_or(0) as u32;
    let start = definitions.first()?.1.start.clone();
    let widths = definitions.first()?.1.template.widths;
    Some(IterationPlan {
        key,
        before,
        same,
        fixed: writer.fixed(),
        made: u64::from(width),
        transfers: next_transfer.0 - transfer.0,
        number,
        definitions,
        is_defined: false,
        weight,
        bindings: gt_ir::Bindings::new(widths, &start),
        transfer,
        changed_tensors: Vec::new(),
        changed_numbers: Vec::new(),
        slots,
        numbers,
        after: changed,
        results,
        used: 0,
        changes: catalogue.changes(),
        is_steady: false,
    })
}

/// Returns the range of number slots that an iteration's steps use.
fn numbers_of(iteration: &TemplateIteration) -> std::ops::Range<u32> {
    let IterationPart { first, last, .. } = iteration.invocation.part;
    let mut slots: Option<(u32, u32)> = None;
    let mut take = |first: u32, count: u32| {
        let end = first + count;
        slots = Some(slots.map_or((first, end), |(low, high)| (low.min(first), high.max(end))));
    };
    for step in &iteration.instance.template.steps[first as usize..last as usize] {
        let Step::Run(step) = step else { continue };
        for argument in &step.operands {
            if let Argument::Number(slot) = argument {
                take(*slot, 1);
            }
        }
        if let Some(varying) = &step.varying {
            take(varying.first, varying.added.len() as u32);
        }
    }
    slots.map_or(0..0, |(first, end)| first..end)
}

/// Converts commands to template steps.
struct TemplateWriter<'a> {
    catalogue: &'a Catalogue,
    iteration: &'a TemplateIteration<'a>,
    first_number: u32,
}

impl TemplateWriter<'_> {
    fn step(&self, builder: &mut TemplateBuilder, command: &WorkerCommand) -> Option<Step> {
        Some(match command {
            WorkerCommand::Run(instruction) => Step::Run(self.run(builder, instruction)?),
            WorkerCommand::Exchange(exchange) => Step::Exchange(self.exchange(builder, exchange)?),
            WorkerCommand::Free(id) => Step::Free(builder.name(*id)),
            _ => return None,
        })
    }

    /// Returns the client's step that an instruction is a part of: the one that makes the same
    /// tensor. Instructions that the planner adds make planner-made tensors.
    fn client_step(&self, output: TensorId) -> Option<&RunStep> {
        let bindings = &self.iteration.instance.bindings;
        if !bindings.is_own(output) {
            return None;
        }
        let place = (output.0 - bindings.bases()[0].0) as u32;
        let steps = &self.iteration.instance.template.steps;
        // If each step makes one tensor, the place is the step's index.
        let guess = steps.get(place as usize);
        let makes =
            |step: &&Step| matches!(step, Step::Run(step) if step.output == Name::Own(place));
        match guess.filter(makes).or_else(|| steps.iter().find(makes)) {
            Some(Step::Run(step)) => Some(step),
            _ => None,
        }
    }

    fn run(&self, builder: &mut TemplateBuilder, instruction: &Instruction) -> Option<RunStep> {
        let mut step = builder.step(instruction)?;
        if let Some(of) = self.catalogue.varying.composite_step(instruction.output) {
            let composite = self.client_step(of.composite)?;
            for &(operand, index) in &of.numbers {
                if let Argument::Number(slot) = composite.operands[index] {
                    step.operands[operand] = Argument::Number(slot - self.first_number);
                }
            }
            return Some(step);
        }
        let Some(of) = self.client_step(instruction.output) else { return Some(step) };
        let is_part = of.operation == instruction.operation
            && of.operands.len() == instruction.operands.len();
        if !is_part {
            return Some(step);
        }
        for (argument, client) in step.operands.iter_mut().zip(&of.operands) {
            if let (Argument::Constant(_), Argument::Number(slot)) = (&*argument, client) {
                *argument = Argument::Number(slot - self.first_number);
            }
        }
        let local = varying_numbers(step.operation, &step.attributes);
        if let Some(varying) = &of.varying
            && varying.added.len() == local.len()
            && !self.catalogue.varying.is_fixed(instruction.output)
        {
            let bindings = &self.iteration.instance.bindings;
            let whole = varying.numbers(bindings);
            let added = local.iter().zip(whole).map(|(local, whole)| local - whole).collect();
            step.varying = Some(Varying { first: varying.first - self.first_number, added });
        }
        Some(step)
    }

    fn exchange(&self, builder: &mut TemplateBuilder, exchange: &Exchange) -> Option<ExchangeStep> {
        let mut step = builder.exchange(exchange)?;
        // Looked up by transfer, as a slot that only sends has no output.
        let sliced = self.catalogue.varying.sliced_exchange(exchange.transfer);
        if let Some(sliced) = sliced {
            // At another position the slice may send more bytes than strict mode allows.
            if self.catalogue.strict.is_some() {
                return None;
            }
            let varying = self.client_step(sliced.output)?.varying.as_ref()?;
            let first = varying.first - self.first_number;
            step.slice = Some(Box::new(VaryingSlice {
                whole: sliced.whole,
                from: (*sliced.from).clone(),
                size: sliced.size,
                starts: Varying { first, added: varying.added.clone() },
                to: (*sliced.to).clone(),
            }));
        }
        Some(step)
    }

    /// Returns the numbers that the plan depends on: those of instructions whose plans are valid
    /// for no others.
    fn fixed(&self) -> Vec<(u32, Scalar)> {
        let TemplateIteration { instance, invocation, .. } = *self.iteration;
        let IterationPart { first, last, .. } = invocation.part;
        let mut fixed = Vec::new();
        for step in &instance.template.steps[first as usize..last as usize] {
            let Step::Run(RunStep { output, operands, varying, .. }) = step else { continue };
            if self.catalogue.varying.is_fixed(instance.bindings.tensor(*output)) {
                let numbers = operands.iter().filter_map(|argument| match argument {
                    Argument::Number(slot) => Some(*slot),
                    _ => None,
                });
                let slots = varying.iter().flat_map(Varying::slots);
                let value = |slot| (slot, instance.bindings.number(slot));
                fixed.extend(numbers.chain(slots).map(value));
            }
        }
        fixed
    }
}

/// The metas of a slot's tensors, to estimate the work of its instructions.
struct SlotMetas(FxHashMap<TensorId, Meta>);

impl SlotMetas {
    fn new(slot: SlotId, before: &[TensorBefore], copies: &[Vec<TensorId>]) -> SlotMetas {
        let mut metas = FxHashMap::default();
        for (before, copies) in before.iter().zip(copies) {
            let parts = copies.iter().zip(before.parts(slot));
            metas.extend(parts.filter_map(|(id, meta)| Some((*id, meta?))));
        }
        SlotMetas(metas)
    }

    /// Returns the estimated work of a command.
    fn work(&mut self, command: &WorkerCommand) -> u64 {
        match command {
            WorkerCommand::Run(instruction) => {
                let operand = |operand: &Operand| match operand {
                    Operand::Scalar(scalar) => Operand::Scalar(*scalar),
                    Operand::Tensor(id) => match self.0.get(id) {
                        Some(meta) => Operand::Tensor(*meta),
                        None => Operand::Scalar(Scalar::Int(0)),
                    },
                };
                let operands: Vec<Operand<Meta>> =
                    instruction.operands.iter().map(operand).collect();
                self.0.extend(instruction.outputs());
                instruction.operation.work(&operands, instruction.meta())
            }
            WorkerCommand::Exchange(exchange) => {
                self.0.extend(exchange.output);
                0
            }
            _ => 0,
        }
    }
}

/// Returns the steps before which an iteration is divided, so that no part costs more than a
/// quantum unless a single step does.
fn cuts(works: &[u64], quantum: u64) -> Vec<u32> {
    let mut cuts = Vec::new();
    let mut spent = 0u64;
    for (index, &work) in works.iter().enumerate() {
        if spent > 0 && spent.saturating_add(work) > quantum {
            cuts.push(index as u32);
            spent = 0;
        }
        spent = spent.saturating_add(work);
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cost_at_most_a_quantum_unless_a_step_costs_more() {
        assert_eq!(cuts(&[4, 4, 4, 4], 8), [2]);
        assert_eq!(cuts(&[4, 4, 9, 1, 1], 8), [2, 3]);
        assert_eq!(cuts(&[0, 0, 100], 8), []);
        assert_eq!(cuts(&[], 8), [0u32; 0]);
    }
}
