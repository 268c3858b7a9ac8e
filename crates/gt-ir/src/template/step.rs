//! Templates and their steps.

use std::sync::Arc;

use smallvec::SmallVec;

use super::bindings::Values;
use super::{MAX_STEPS, TemplateError, VaryingSlice};
use crate::command::WorkerCommand;
use crate::exchange::Exchange;
use crate::ids::{SlotId, TransferId};
use crate::instruction::{
    Attribute, Attributes, Instruction, Operand, Results, SourceId, TensorId,
};
use crate::operation::{Meta, Operation};
use crate::ops::commit::{CommitParts, is_commit};
use crate::record;
use crate::scalar::Scalar;

/// A tensor of an iteration, independent of the iteration.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Name {
    /// A tensor that the client named, counted from the iteration's base.
    Own(u32),
    /// A planner-made tensor, counted from the iteration's base.
    Made(u32),
    /// A tensor from outside the iteration, by slot.
    Outside(u32),
}

record!(enum Name { 0 => Own(place), 1 => Made(place), 2 => Outside(slot) });

/// An operand of a step.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Argument {
    Tensor(Name),
    /// A number of the iteration, by slot.
    Number(u32),
    /// A number that is the same in each iteration.
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

/// A varying attribute: its elements are the numbers of consecutive slots, each plus an offset.
#[derive(Clone, PartialEq, Debug)]
pub struct Varying {
    pub first: u32,
    pub added: SmallVec<[i64; 4]>,
}

record!(struct Varying { first, added });

impl Varying {
    /// Returns the number slots that it uses.
    pub fn slots(&self) -> std::ops::Range<u32> {
        self.first..self.first + self.added.len() as u32
    }

    /// Returns the attribute's elements in an iteration.
    pub fn numbers<'a>(&'a self, values: &'a impl Values) -> impl Iterator<Item = i64> + 'a {
        let number = |slot| values.number(slot).as_i64();
        (self.first..).zip(&self.added).map(move |(slot, added)| number(slot).wrapping_add(*added))
    }
}

/// An instruction that refers to tensors by name and to numbers by slot.
#[derive(Clone, PartialEq, Debug)]
pub struct RunStep {
    pub operation: &'static Operation,
    pub output: Name,
    pub results: Results,
    pub operands: SmallVec<[Argument; 3]>,
    /// The attributes; of a varying one, those of the first iteration.
    pub attributes: Attributes,
    pub varying: Option<Varying>,
    pub source: SourceId,
    pub signal: u32,
}

record!(struct RunStep {
    operation, output, results, operands, attributes, varying, source, signal,
});

impl RunStep {
    /// Returns the attributes in an iteration.
    pub fn attributes(&self, values: &impl Values) -> Attributes {
        let mut attributes = self.attributes.clone();
        if let Some(varying) = &self.varying
            && let Some(index) = self.operation.varying_attribute()
            && let Some(attribute) = attributes.get_mut(index)
        {
            *attribute = Attribute::Ints(varying.numbers(values).collect());
        }
        attributes
    }

    /// Returns the instruction in an iteration.
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

/// An exchange, with its transfer number relative to the iteration's first, and names for its
/// tensors.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangeStep {
    pub exchange: Box<Exchange>,
    pub transfer: u32,
    pub input: Option<Name>,
    pub output: Option<Name>,
    /// Set for a slice whose position varies: its parts are then computed in each iteration.
    pub slice: Option<Box<VaryingSlice>>,
}

record!(struct ExchangeStep { exchange, transfer, input, output, slice });

impl ExchangeStep {
    /// Returns the exchange for a slot, in an iteration whose transfers begin with `first`.
    pub fn exchange(&self, values: &impl Values, first: TransferId, slot: SlotId) -> Box<Exchange> {
        let mut exchange = self.exchange.clone();
        exchange.transfer = TransferId(first.0.wrapping_add(u64::from(self.transfer)));
        exchange.input = self.input.map(|name| values.tensor(name));
        let meta: Option<Meta> = exchange.output.map(|(_, meta)| meta);
        exchange.output = self.output.map(|name| values.tensor(name)).zip(meta);
        if let Some(slice) = &self.slice {
            exchange.parts = slice.parts(values, slot);
        }
        exchange
    }
}

/// One step of a template.
#[derive(Clone, PartialEq, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all steps are instructions")]
pub enum Step {
    Run(RunStep),
    /// A tensor created from data, which is sent separately.
    Data {
        output: Name,
        meta: Meta,
    },
    Exchange(ExchangeStep),
    Free(Name),
}

record!(enum Step { 0 => Run(step), 1 => Data { output, meta }, 2 => Exchange(step), 3 => Free(name) });

impl Step {
    /// Returns the command for a slot in an iteration; `None` for data.
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

    /// Returns the parts of the commit, if it is one.
    pub fn commit(&self) -> Option<CommitParts<Name>> {
        match self {
            Step::Run(step) if is_commit(step.operation) => {
                let tensors = step.operands.iter().filter_map(Argument::tensor);
                Some(CommitParts::of(tensors, &step.attributes))
            }
            _ => None,
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
    /// The frees that are not among the steps, in order.
    pub frees: Vec<Name>,
    /// The numbers of client names and of planner-made names that an iteration uses.
    pub widths: [u32; 2],
    /// The number of slots for outside tensors, which are in the order of their first use.
    pub tensors: u32,
    /// The number of number slots.
    pub numbers: u32,
    /// The steps before which an iteration may yield: they divide it into parts of at most a
    /// quantum of work.
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

    /// Checks that a client may define it.
    ///
    /// # Errors
    /// It has too many steps or none, or names tensors that do not exist or only the planner makes.
    pub fn check_client(&self, number: u32) -> Result<(), TemplateError> {
        if self.steps.is_empty() || self.steps.len() > MAX_STEPS {
            return Err(TemplateError::Length { steps: self.steps.len() });
        }
        let Template { tensors, numbers, .. } = *self;
        // Slots are consecutive in the order of their first use, and all are used.
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

    /// Returns the tensor that one of its frees frees in an iteration.
    pub fn freed(&self, index: usize, values: &impl Values) -> TensorId {
        values.tensor(self.frees[index])
    }
}

/// Returns the elements of the varying attribute.
#[inline]
pub fn varying_numbers<'a>(operation: &Operation, attributes: &'a Attributes) -> &'a [i64] {
    match operation.varying_attribute().and_then(|index| attributes.get(index)) {
        Some(Attribute::Ints(values)) => values,
        _ => &[],
    }
}
