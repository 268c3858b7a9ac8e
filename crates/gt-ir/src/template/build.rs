//! Builds a template from one iteration of a sequence.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    Argument, Definition, ExchangeStep, Name, RunStep, Start, Step, Template, Varying,
    varying_numbers,
};
use crate::exchange::Exchange;
use crate::ids::TransferId;
use crate::instruction::{Instruction, Operand, TensorId};
use crate::operation::Meta;
use crate::scalar::Scalar;

/// Builds a template step by step, replacing tensor ids by names relative to the iteration.
pub struct TemplateBuilder {
    template: Template,
    start: Start,
    /// The first transfer of the iteration.
    transfer: TransferId,
    made: FxHashSet<TensorId>,
    slots: FxHashMap<TensorId, u32>,
}

impl TemplateBuilder {
    /// Returns a builder for an iteration whose client and planner-made names have these bases and
    /// counts.
    pub fn new(bases: [TensorId; 2], widths: [u32; 2], transfer: TransferId) -> TemplateBuilder {
        let template = Template { widths, ..Template::default() };
        let start = Start { bases, tensors: Vec::new(), numbers: Vec::new() };
        let (made, slots) = (FxHashSet::default(), FxHashMap::default());
        TemplateBuilder { template, start, transfer, made, slots }
    }

    /// Adds a number slot, and returns its index.
    pub fn number(&mut self, value: Scalar) -> u32 {
        self.start.numbers.push(value);
        self.start.numbers.len() as u32 - 1
    }

    /// Returns the name of a tensor: its position if a step has made it, or else an outside slot.
    pub fn name(&mut self, id: TensorId) -> Name {
        if self.made.contains(&id) {
            return self.own(id).unwrap_or(Name::Outside(0));
        }
        let Start { tensors, .. } = &mut self.start;
        let slot = self.slots.entry(id).or_insert_with(|| {
            tensors.push(id);
            tensors.len() as u32 - 1
        });
        Name::Outside(*slot)
    }

    /// The name of a tensor that this iteration makes.
    fn own(&self, id: TensorId) -> Option<Name> {
        let place = |space: usize| {
            let place = id.0.wrapping_sub(self.start.bases[space].0);
            (place < u64::from(self.template.widths[space])).then_some(place as u32)
        };
        place(0).map(Name::Own).or_else(|| place(1).map(Name::Made))
    }

    fn make(&mut self, id: TensorId, count: usize) -> Option<Name> {
        let name = self.own(id)?;
        self.made.extend((0..count as u64).map(|index| id.after(index)));
        Some(name)
    }

    /// The step of an instruction, with numbers as constants; `None` if its results are not in the
    /// iteration's name spaces.
    pub fn step(&mut self, instruction: &Instruction) -> Option<RunStep> {
        let operands = instruction.operands.iter().map(|operand| match operand {
            Operand::Tensor(id) => Argument::Tensor(self.name(*id)),
            Operand::Scalar(scalar) => Argument::Constant(*scalar),
        });
        let operands = operands.collect();
        let output = self.make(instruction.output, instruction.results.len())?;
        Some(RunStep {
            operation: instruction.operation,
            output,
            results: instruction.results.clone(),
            operands,
            attributes: instruction.attributes.clone(),
            varying: None,
            source: instruction.source,
            signal: instruction.signal,
        })
    }

    /// Returns the step of an instruction, with slots for all numbers.
    pub fn step_with_slots(&mut self, instruction: &Instruction) -> Option<RunStep> {
        let mut step = self.step(instruction)?;
        for argument in &mut step.operands {
            if let Argument::Constant(value) = *argument {
                *argument = Argument::Number(self.number(value));
            }
        }
        let values = varying_numbers(step.operation, &step.attributes);
        if !values.is_empty() {
            let first = self.start.numbers.len() as u32;
            values.iter().for_each(|&value| self.start.numbers.push(Scalar::Int(value)));
            step.varying = Some(Varying { first, added: values.iter().map(|_| 0).collect() });
        }
        Some(step)
    }

    pub fn push(&mut self, step: Step) {
        self.template.steps.push(step);
    }

    /// Adds a tensor that is created from data; `None` if it is not in the iteration's name spaces.
    pub fn data(&mut self, output: TensorId, meta: Meta) -> Option<()> {
        let output = self.make(output, 1)?;
        self.push(Step::Data { output, meta });
        Some(())
    }

    /// Returns the step of an exchange.
    pub fn exchange(&mut self, exchange: &Exchange) -> Option<ExchangeStep> {
        let transfer = exchange.transfer.0.checked_sub(self.transfer.0)?;
        let input = exchange.input.map(|id| self.name(id));
        let output = match exchange.output {
            Some((id, _)) => Some(self.make(id, 1)?),
            None => None,
        };
        let (exchange, transfer) = (Box::new(exchange.clone()), u32::try_from(transfer).ok()?);
        Some(ExchangeStep { exchange, transfer, input, output, slice: None })
    }

    /// Adds a free after all steps.
    pub fn free_later(&mut self, id: TensorId) {
        let name = self.name(id);
        self.template.frees.push(name);
    }

    /// Sets the steps before which an iteration may yield.
    pub fn cut(&mut self, cuts: Vec<u32>) {
        self.template.cuts = cuts;
    }

    /// The steps so far.
    pub fn steps(&self) -> &[Step] {
        &self.template.steps
    }

    /// The outside tensors so far, by slot.
    pub fn outside(&self) -> &[TensorId] {
        &self.start.tensors
    }

    pub fn finish(mut self, number: u32, compile: bool) -> Definition {
        self.template.tensors = self.start.tensors.len() as u32;
        self.template.numbers = self.start.numbers.len() as u32;
        Definition { number, template: self.template, start: self.start, compile }
    }
}
