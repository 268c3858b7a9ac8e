//! What a template consists of.

use std::sync::Arc;

use smallvec::SmallVec;

use super::bindings::Values;
use super::{MAX_STEPS, MovingSlice, TemplateError};
use crate::command::WorkerCommand;
use crate::exchange::{Exchange, SlotId, TransferId};
use crate::instruction::{
    Attribute, Attributes, Instruction, Operand, Results, SourceId, TensorId,
};
use crate::operation::{Meta, Operation};
use crate::record;
use crate::scalar::Scalar;

/// Which tensor of an iteration, by its place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Name {
    /// The client's, counted from the iteration's first.
    Own(u32),
    /// The planner's own, counted likewise.
    Made(u32),
    /// From outside, by slot.
    Outside(u32),
}

record!(enum Name { 0 => Own(place), 1 => Made(place), 2 => Outside(slot) });

/// An operand of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Argument {
    Tensor(Name),
    /// A number of the iteration, by slot,
    Number(u32),
    /// or one that is always the same.
    Constant(Scalar),
}

record!(enum Argument { 0 => Tensor(name), 1 => Number(slot), 2 => Constant(value) });

impl Argument {
    pub fn tensor(&self) -> Option<Name> {
        match self {
            Argument::Tensor(name) => Some(*name),
            _ => None,
        }
    }
}

/// An attribute whose numbers are the iteration's: those of some slots, each with something added.
#[derive(Clone, PartialEq, Debug)]
pub struct Varying {
    pub first: u32,
    pub added: SmallVec<[i64; 4]>,
}

record!(struct Varying { first, added });

impl Varying {
    /// The attribute's numbers.
    pub fn numbers<'a>(&'a self, values: &'a impl Values) -> impl Iterator<Item = i64> + 'a {
        let number = |slot| values.number(slot).as_i64();
        (self.first..).zip(&self.added).map(move |(slot, added)| number(slot).wrapping_add(*added))
    }
}

/// An instruction whose tensors and numbers are named by their place.
#[derive(Clone, PartialEq, Debug)]
pub struct RunStep {
    pub operation: &'static Operation,
    pub output: Name,
    pub results: Results,
    pub operands: SmallVec<[Argument; 3]>,
    /// The attribute that varies holds its numbers of the first iteration.
    pub attributes: Attributes,
    pub varying: Option<Varying>,
    pub source: SourceId,
    pub signal: u32,
}

record!(struct RunStep {
    operation, output, results, operands, attributes, varying, source, signal,
});

impl RunStep {
    /// The attributes in an iteration.
    pub fn attributes(&self, values: &impl Values) -> Attributes {
        let mut attributes = self.attributes.clone();
        if let Some(varying) = &self.varying
            && let Some(index) = varying_attribute(self.operation)
            && let Some(attribute) = attributes.get_mut(index)
        {
            *attribute = Attribute::Ints(varying.numbers(values).collect());
        }
        attributes
    }

    /// The instruction that it is in an iteration.
    pub fn instruction(&self, values: &impl Values) -> Instruction {
        let operand = |argument: &Argument| match argument {
            Argument::Tensor(name) => Operand::Tensor(values.tensor(*name)),
            Argument::Number(slot) => Operand::Scalar(values.number(*slot)),
            Argument::Constant(scalar) => Operand::Scalar(*scalar),
        };
        Instruction {
            operation: self.operation,
            output: values.tensor(self.output),
            results: self.results.clone(),
            operands: self.operands.iter().map(operand).collect(),
            attributes: self.attributes(values),
            source: self.source,
            signal: self.signal,
        }
    }
}

/// An exchange: its transfer is counted from the iteration's first, names stand beside it.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeStep {
    pub exchange: Box<Exchange>,
    pub transfer: u32,
    pub input: Option<Name>,
    pub output: Option<Name>,
    /// It takes a slice whose place moves: then its parts are worked out in each iteration.
    pub moving: Option<Box<MovingSlice>>,
}

record!(struct ExchangeStep { exchange, transfer, input, output, moving });

impl ExchangeStep {
    /// The exchange that it is for a slot in an iteration whose exchanges begin with `first`.
    pub fn exchange(&self, values: &impl Values, first: TransferId, slot: SlotId) -> Box<Exchange> {
        let mut exchange = self.exchange.clone();
        exchange.transfer = TransferId(first.0.wrapping_add(u64::from(self.transfer)));
        exchange.input = self.input.map(|name| values.tensor(name));
        let meta: Option<Meta> = exchange.output.map(|(_, meta)| meta);
        exchange.output = self.output.map(|name| values.tensor(name)).zip(meta);
        if let Some(moving) = &self.moving {
            exchange.parts = moving.parts(values, slot);
        }
        exchange
    }
}

/// One step of a template.
#[derive(Clone, PartialEq, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all steps are instructions")]
pub enum Step {
    Run(RunStep),
    /// A tensor made from data, which comes by itself.
    Data {
        output: Name,
        meta: Meta,
    },
    Exchange(ExchangeStep),
    Free(Name),
}

record!(enum Step { 0 => Run(step), 1 => Data { output, meta }, 2 => Exchange(step), 3 => Free(name) });

impl Step {
    /// The command that it is for a slot in an iteration; `None` for data.
    pub fn command(
        &self,
        values: &impl Values,
        first: TransferId,
        slot: SlotId,
    ) -> Option<WorkerCommand> {
        Some(match self {
            Step::Run(step) => WorkerCommand::Run(Arc::new(step.instruction(values))),
            Step::Data { .. } => return None,
            Step::Exchange(step) => WorkerCommand::Exchange(step.exchange(values, first, slot)),
            Step::Free(name) => WorkerCommand::Free(values.tensor(*name)),
        })
    }

    /// The tensors that it makes.
    pub fn makes(&self) -> SmallVec<[(Name, Meta); 1]> {
        match self {
            Step::Run(RunStep { output: Name::Own(first), results, .. }) => {
                (*first..).map(Name::Own).zip(results.iter().copied()).collect()
            }
            Step::Run(RunStep { output: Name::Made(first), results, .. }) => {
                (*first..).map(Name::Made).zip(results.iter().copied()).collect()
            }
            Step::Data { output, meta } => SmallVec::from_iter([(*output, *meta)]),
            Step::Exchange(step) => {
                let meta = step.exchange.output.map(|(_, meta)| meta);
                step.output.zip(meta).into_iter().collect()
            }
            Step::Run(_) | Step::Free(_) => SmallVec::new(),
        }
    }

    /// The tensors that it reads.
    pub fn reads(&self) -> impl Iterator<Item = Name> + '_ {
        let (operands, input) = match self {
            Step::Run(step) => (step.operands.as_slice(), None),
            Step::Exchange(step) => ([].as_slice(), step.input),
            Step::Data { .. } | Step::Free(_) => ([].as_slice(), None),
        };
        operands.iter().filter_map(Argument::tensor).chain(input)
    }
}

/// A sequence of steps.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Template {
    pub steps: Vec<Step>,
    /// What is freed in an iteration, if that does not stand among the steps: in the order in
    /// which it comes.
    pub frees: Vec<Name>,
    /// How many names of the client's, and of the planner's own, an iteration uses.
    pub widths: [u32; 2],
    /// How many tensors from outside there are, in the order of their first use, and numbers.
    pub tensors: u32,
    pub numbers: u32,
    /// The steps before which an iteration may stop for others: it is run in parts of at most a
    /// quantum of work, always the same ones.
    pub cuts: Vec<u32>,
}

record!(struct Template { steps, frees, widths, tensors, numbers, cuts });

impl Template {
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Checks that it is one that a client may define.
    ///
    /// # Errors
    /// It has too many steps or none, names what is not there, or what only the planner makes.
    pub fn check_client(&self, number: u32) -> Result<(), TemplateError> {
        if self.steps.is_empty() || self.steps.len() > MAX_STEPS {
            return Err(TemplateError::Length { steps: self.steps.len() });
        }
        let Template { tensors, numbers, .. } = *self;
        // Slots follow one another in the order of their first use, and each is used.
        let (mut known, mut counted, mut made) = (0, 0, 0u32);
        let mut names = |name: Name, made: u32| match name {
            Name::Own(place) => place < made,
            Name::Made(_) => false,
            Name::Outside(slot) => {
                known = known.max(slot.saturating_add(1).min(known + 1));
                slot < known
            }
        };
        for (index, step) in self.steps.iter().enumerate() {
            let in_order = match step {
                Step::Run(step) => {
                    let mut fits = step.output == Name::Own(made) && !step.results.is_empty();
                    for argument in &step.operands {
                        fits &= match argument {
                            Argument::Tensor(name) => names(*name, made),
                            Argument::Number(slot) => {
                                counted += 1;
                                *slot == counted - 1
                            }
                            Argument::Constant(_) => true,
                        };
                    }
                    let count = varying_numbers(step.operation, &step.attributes).len() as u32;
                    fits &= match &step.varying {
                        Some(varying) => {
                            counted += count;
                            varying.first == counted - count && varying.added.len() as u32 == count
                        }
                        None => count == 0,
                    };
                    made = made.saturating_add(step.results.len() as u32);
                    fits
                }
                Step::Data { output, .. } => {
                    made += 1;
                    *output == Name::Own(made - 1)
                }
                Step::Exchange(_) | Step::Free(_) => {
                    return Err(TemplateError::Planned { step: index });
                }
            };
            if !in_order {
                return Err(TemplateError::Order { step: index });
            }
        }
        let frees_fit = self.frees.iter().all(|name| names(*name, made));
        let fits = known == tensors && counted == numbers && self.widths == [made, 0];
        if fits && frees_fit { Ok(()) } else { Err(TemplateError::Slot { number }) }
    }

    /// The tensor that one of its frees is in an iteration.
    pub fn freed(&self, index: usize, values: &impl Values) -> TensorId {
        values.tensor(self.frees[index])
    }
}

/// Which attribute of an operation holds numbers that vary from iteration to iteration, as the
/// place of a slice does; all others are part of the structure.
#[inline]
pub fn varying_attribute(operation: &Operation) -> Option<usize> {
    operation.attributes.iter().position(|attribute| attribute.varies)
}

/// The numbers of the attribute that varies.
#[inline]
pub fn varying_numbers<'a>(operation: &Operation, attributes: &'a Attributes) -> &'a [i64] {
    match varying_attribute(operation).and_then(|index| attributes.get(index)) {
        Some(Attribute::Ints(values)) => values,
        _ => &[],
    }
}
