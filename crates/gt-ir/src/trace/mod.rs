//! Traces: recorded sequences of operations, on values that are numbered.
//!
//! What runs again for other tensors and numbers is recorded as a [`Trace`], and its owner adds
//! what it needs to know besides: a client the work of each instruction and what to drop after it,
//! to issue them again; a worker which inputs are used up and whether to compile it, for an engine;
//! a planner nothing, for the steps of a composite operation.
//!
//! A trace refers to its inputs by number. The numbers among the inputs may differ in each run,
//! and so may the attribute of a step that varies, whose elements are such inputs. The same for
//! instructions of a stream, whose tensors have names that count on from iteration to iteration,
//! is a [`Template`](crate::template::Template).

mod key;
mod listing;

use smallvec::{SmallVec, smallvec};

use crate::instruction::{Attribute, Attributes, Operand, Results};
use crate::operation::{Body, Graph, Meta, Operation, Var, int};
use crate::ops::further::FURTHER;
use crate::scalar::Scalar;

/// Operations to run in order. Values are numbered: the inputs first, then one for each step.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    pub inputs: Vec<Input>,
    pub steps: Vec<TraceStep>,
    /// The values to return; all others die at their last use.
    pub outputs: Vec<u32>,
}

/// An input of a trace.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Input {
    Tensor(Meta),
    /// A number of this kind; its value may differ in each run.
    Number(Scalar),
}

/// An operand of a step: a value, by its number, or a constant.
pub type Source = Operand<u32>;

/// An operation of a trace.
#[derive(Clone, Debug)]
pub struct TraceStep {
    pub operation: &'static Operation,
    pub operands: SmallVec<[Source; 3]>,
    /// An attribute that varies has its elements of the recorded run here.
    pub attributes: Attributes,
    /// The number inputs that the varying attribute takes its elements from.
    pub varying: SmallVec<[u32; 2]>,
    pub output: Meta,
}

impl TraceStep {
    /// Returns whether it represents a further result of the previous step.
    pub fn is_further(&self) -> bool {
        self.operation.id == FURTHER.id
    }

    /// Returns the values that it reads.
    pub fn reads(&self) -> impl Iterator<Item = u32> {
        self.operands.iter().filter_map(Operand::tensor).chain(&self.varying).copied()
    }

    /// Returns its attributes in a run whose number inputs are given by their values' numbers.
    pub fn bind(&self, number: impl Fn(u32) -> Scalar) -> Attributes {
        let mut attributes = self.attributes.clone();
        if let Some(index) = self.operation.varying_attribute()
            && let Some(Attribute::Ints(values)) = attributes.get_mut(index)
        {
            for (value, input) in values.iter_mut().zip(&self.varying) {
                *value = number(*input).as_i64();
            }
        }
        attributes
    }
}

impl Trace {
    /// Returns a trace without steps.
    pub fn new(inputs: Vec<Input>) -> Trace {
        Trace { inputs, ..Trace::default() }
    }

    /// Returns the trace of one operation on operands of these shapes and dtypes, expanded into
    /// what `lowers` accepts. Its inputs are the tensors among them, in order.
    ///
    /// # Errors
    /// The operation's inference rejects the operands.
    pub fn of_operation(
        operation: &'static Operation,
        metas: &[Operand<Meta>],
        attributes: &Attributes,
        lowers: &dyn Fn(&'static Operation) -> bool,
    ) -> crate::Result<Trace> {
        let mut trace = Trace::default();
        let mut operands: SmallVec<[Source; 3]> = SmallVec::new();
        for meta in metas {
            operands.push(match *meta {
                Operand::Tensor(meta) => Operand::Tensor(trace.input(Input::Tensor(meta))),
                Operand::Scalar(scalar) => Operand::Scalar(scalar),
            });
        }
        let attributes = attributes.clone();
        let output = trace.push(lowers, operation, operands, attributes, SmallVec::new())?;
        trace.outputs.push(output);
        Ok(trace)
    }

    /// Adds an input, before any step, and returns its value.
    pub fn input(&mut self, input: Input) -> u32 {
        self.inputs.push(input);
        self.inputs.len() as u32 - 1
    }

    /// Returns shape and dtype of a value, or a number of its kind.
    pub fn meta(&self, value: u32) -> Operand<Meta> {
        match self.inputs.get(value as usize) {
            Some(Input::Tensor(meta)) => Operand::Tensor(*meta),
            Some(Input::Number(scalar)) => Operand::Scalar(*scalar),
            None => Operand::Tensor(self.steps[value as usize - self.inputs.len()].output),
        }
    }

    /// Returns the number of values: inputs and steps.
    pub fn values(&self) -> usize {
        self.inputs.len() + self.steps.len()
    }

    /// Returns the value that a step computes.
    #[inline]
    pub fn value_of(&self, step: usize) -> u32 {
        (self.inputs.len() + step) as u32
    }

    /// Returns the step that computes a value; `None` for an input.
    #[inline]
    pub fn step_of(&self, value: u32) -> Option<usize> {
        (value as usize).checked_sub(self.inputs.len())
    }

    /// Returns a cache key: equal for equal traces. The values of number inputs are not part of it;
    /// their kinds are.
    pub fn key(&self) -> Vec<u8> {
        key::key(self)
    }

    /// Returns for each value the index of the last step that uses it.
    pub fn last_uses(&self) -> Vec<Option<u32>> {
        let mut last = vec![None; self.values()];
        for (index, step) in self.steps.iter().enumerate() {
            for value in step.reads() {
                last[value as usize] = Some(index as u32);
            }
        }
        last
    }

    /// Checks the varying attributes of a run whose number inputs are given by their values'
    /// numbers; all else was checked when the trace was recorded.
    ///
    /// # Errors
    /// An operation's inference rejects them.
    pub fn check_varying(&self, number: impl Fn(u32) -> Scalar) -> crate::Result<()> {
        for step in self.steps.iter().filter(|step| !step.varying.is_empty()) {
            step.operation.check(&self.metas(&step.operands), &step.bind(&number))?;
        }
        Ok(())
    }

    /// Returns the operands' metas, for inference.
    pub fn metas(&self, operands: &[Source]) -> SmallVec<[Operand<Meta>; 3]> {
        let meta = |source: &Source| match source {
            Operand::Tensor(value) => self.meta(*value),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        };
        operands.iter().map(meta).collect()
    }

    /// Appends an operation, expanded into what `lowers` accepts, and returns its first result.
    ///
    /// # Errors
    /// The operation's inference rejects the operands.
    pub fn push(
        &mut self,
        lowers: &dyn Fn(&'static Operation) -> bool,
        operation: &'static Operation,
        operands: SmallVec<[Source; 3]>,
        attributes: Attributes,
        varying: SmallVec<[u32; 2]>,
    ) -> crate::Result<u32> {
        let results = operation.results(&self.metas(&operands), &attributes)?;
        if let Body::Composite(body) = operation.body
            && !lowers(operation)
        {
            let inputs: SmallVec<[Operand<Var>; 3]> =
                operands.iter().map(|source| source.map(|&value| Var(value))).collect();
            let mut expansion = Expansion { trace: self, lowers };
            return Ok(body(&mut expansion, &inputs, &attributes).0);
        }
        Ok(self.record(operation, operands, attributes, varying, &results))
    }

    /// Appends an operation as it is, whose results are known, and returns the first of them.
    pub fn record(
        &mut self,
        operation: &'static Operation,
        operands: SmallVec<[Source; 3]>,
        attributes: Attributes,
        varying: SmallVec<[u32; 2]>,
        results: &[Meta],
    ) -> u32 {
        let output = results[0];
        self.steps.push(TraceStep { operation, operands, attributes, varying, output });
        let first = self.values() as u32 - 1;
        for (index, &output) in results.iter().enumerate().skip(1) {
            self.steps.push(TraceStep {
                operation: &FURTHER,
                operands: smallvec![Operand::Tensor(first)],
                attributes: smallvec![Attribute::Int(index as i64)],
                varying: SmallVec::new(),
                output,
            });
        }
        first
    }

    /// Returns the steps that represent further results of a step, with their indices among its
    /// results.
    fn further(&self, step: usize) -> impl Iterator<Item = (usize, &TraceStep)> {
        let first = Operand::Tensor(self.value_of(step));
        self.steps[step + 1..]
            .iter()
            .take_while(move |of| of.is_further() && of.operands[0] == first)
            .map(|of| (int(&of.attributes, 0) as usize, of))
    }

    /// Returns the metas of the results of a step that the trace has.
    pub fn recorded_results(&self, step: usize) -> Results {
        let further = self.further(step).map(|(_, of)| of.output);
        std::iter::once(self.steps[step].output).chain(further).collect()
    }

    /// Returns the metas of all results of a step, from inference.
    pub fn results(&self, step: usize) -> Results {
        let of = &self.steps[step];
        let results = of.operation.results(&self.metas(&of.operands), &of.attributes);
        results.expect("it was checked when the trace was recorded")
    }

    /// Returns for each result of a step the index of the step that represents it; `None` for an
    /// unused result.
    pub fn places(&self, step: usize) -> Vec<Option<usize>> {
        let mut places = vec![None; self.results(step).len()];
        places[0] = Some(step);
        for (offset, (index, _)) in self.further(step).enumerate() {
            places[index] = Some(step + 1 + offset);
        }
        places
    }
}

/// Appends the steps of a composite operation to a trace.
struct Expansion<'a> {
    trace: &'a mut Trace,
    lowers: &'a dyn Fn(&'static Operation) -> bool,
}

impl Graph for Expansion<'_> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let operands = operands.iter().map(|operand| operand.map(|var| var.0)).collect();
        let value = self.trace.push(self.lowers, operation, operands, attributes, SmallVec::new());
        Var(value.expect("bodies build valid operations"))
    }

    fn meta(&self, var: Var) -> Meta {
        *self.trace.meta(var.0).tensor().expect("bodies are about tensors")
    }
}

#[cfg(test)]
mod tests;
