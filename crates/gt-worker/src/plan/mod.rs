//! Plans: sequences of operations that an engine prepares and runs as one. Programs are cached by
//! their [`key`].

mod key;

use gt_ir::event::{Activity, Mix};
use gt_ir::instruction::{Attribute, Results};
use gt_ir::operation::{Body, int};
use gt_ir::ops::further::FURTHER;
use gt_ir::template::varying_attribute;
use gt_ir::{Attributes, Graph, Meta, Operand, Operation, Scalar, Var};
use smallvec::{SmallVec, smallvec};

/// Operations to run in order. Values are numbered: the inputs first, then one for each step.
#[derive(Clone, Debug)]
pub struct Plan {
    pub inputs: Vec<Input>,
    pub steps: Vec<PlanStep>,
    /// The values to return; all others die at their last use.
    pub outputs: Vec<u32>,
    /// Whether the user requested compilation; otherwise the engine decides.
    pub compile: bool,
}

/// An input of a plan.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Input {
    /// A tensor. One that dies is not used after the run, so its memory may be reused.
    Tensor { meta: Meta, dies: bool },
    /// A number of this kind; its value may differ in each run.
    Number(Scalar),
}

/// An operand of a step: a value, by its number, or a constant.
pub type Source = Operand<u32>;

/// An operation of a plan.
#[derive(Clone, Debug)]
pub struct PlanStep {
    pub operation: &'static Operation,
    pub operands: SmallVec<[Source; 3]>,
    /// An attribute that varies has its values of the plan's first run here.
    pub attributes: Attributes,
    /// The number values that the varying attribute takes its elements from.
    pub varying: SmallVec<[u32; 2]>,
    pub output: Meta,
}

impl PlanStep {
    /// Whether it represents a further result of the previous step.
    pub fn is_further(&self) -> bool {
        self.operation.id == FURTHER.id
    }

    /// The values that it reads.
    pub fn reads(&self) -> impl Iterator<Item = u32> {
        self.operands.iter().filter_map(Operand::tensor).chain(&self.varying).copied()
    }
}

/// An input in one run.
#[derive(Clone, Debug)]
pub enum InputValue<T> {
    Tensor(T),
    Number(Scalar),
    /// A dying tensor that the engine has taken.
    Taken,
}

impl<T> InputValue<T> {
    /// Returns the number; panics on a tensor.
    pub fn number(&self) -> Scalar {
        match self {
            InputValue::Number(scalar) => *scalar,
            _ => unreachable!("the plan says where there are numbers"),
        }
    }
}

impl Plan {
    /// A plan without steps.
    pub fn new(inputs: Vec<Input>) -> Plan {
        Plan { inputs, steps: Vec::new(), outputs: Vec::new(), compile: false }
    }

    /// Shape and dtype of a value, or a number of its kind.
    pub fn meta(&self, value: u32) -> Operand<Meta> {
        match self.inputs.get(value as usize) {
            Some(Input::Tensor { meta, .. }) => Operand::Tensor(*meta),
            Some(Input::Number(scalar)) => Operand::Scalar(*scalar),
            None => Operand::Tensor(self.steps[value as usize - self.inputs.len()].output),
        }
    }

    /// The number of values: inputs and steps.
    pub fn values(&self) -> usize {
        self.inputs.len() + self.steps.len()
    }

    /// The cache key: equal for equal plans.
    pub fn key(&self) -> Vec<u8> {
        key::key(self)
    }

    /// The mix of its steps' activities, weighted by work.
    pub fn mix(&self) -> Mix {
        Mix::new(self.steps.iter().map(|step| {
            let work = step.operation.work(&self.metas(&step.operands), step.output);
            (Activity::of(step.operation.family), work)
        }))
    }

    /// For each value, the index of the last step that uses it.
    pub fn last_uses(&self) -> Vec<Option<u32>> {
        let mut last = vec![None; self.values()];
        for (index, step) in self.steps.iter().enumerate() {
            for value in step.reads() {
                last[value as usize] = Some(index as u32);
            }
        }
        last
    }

    /// Checks the varying attributes of a run with these inputs; all else was checked when the plan
    /// was built.
    ///
    /// # Errors
    /// An operation's inference rejects them.
    pub fn check_varying<T>(&self, inputs: &[InputValue<T>]) -> gt_ir::Result<()> {
        for step in self.steps.iter().filter(|step| !step.varying.is_empty()) {
            let metas = self.metas(&step.operands);
            step.operation.check(&metas, &attributes(step, inputs))?;
        }
        Ok(())
    }

    /// The operands' metas, for inference.
    pub fn metas(&self, operands: &[Source]) -> SmallVec<[Operand<Meta>; 3]> {
        let meta = |source: &Source| match source {
            Operand::Tensor(value) => self.meta(*value),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        };
        operands.iter().map(meta).collect()
    }

    /// Appends an operation, expanded if the engine does not lower it, and returns its value.
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
    ) -> gt_ir::Result<u32> {
        let metas = self.metas(&operands);
        let results = operation.results(&metas, &attributes)?;
        if let Body::Composite(body) = operation.body
            && !lowers(operation)
        {
            let inputs: SmallVec<[Operand<Var>; 3]> =
                operands.iter().map(|source| source.map(|&value| Var(value))).collect();
            let mut expansion = Expansion { plan: self, lowers };
            return Ok(body(&mut expansion, &inputs, &attributes).0);
        }
        let output = results[0];
        self.steps.push(PlanStep { operation, operands, attributes, varying, output });
        let first = self.values() as u32 - 1;
        for (index, &output) in results.iter().enumerate().skip(1) {
            self.steps.push(PlanStep {
                operation: &FURTHER,
                operands: smallvec![Operand::Tensor(first)],
                attributes: smallvec![Attribute::Int(index as i64)],
                varying: SmallVec::new(),
                output,
            });
        }
        Ok(first)
    }

    /// Returns the steps that represent further results of a step, with their indices among its
    /// results.
    fn further(&self, step: usize) -> impl Iterator<Item = (usize, &PlanStep)> {
        let first = Operand::Tensor((self.inputs.len() + step) as u32);
        self.steps[step + 1..]
            .iter()
            .take_while(move |of| of.operation.id == FURTHER.id && of.operands[0] == first)
            .map(|of| (int(&of.attributes, 0) as usize, of))
    }

    /// The metas of all results of a step, from inference.
    pub fn results(&self, step: usize) -> Results {
        let of = &self.steps[step];
        let results = of.operation.results(&self.metas(&of.operands), &of.attributes);
        results.expect("it was checked when the plan was built")
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

/// Appends the steps of a composite operation to a plan.
struct Expansion<'a> {
    plan: &'a mut Plan,
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
        let value = self.plan.push(self.lowers, operation, operands, attributes, SmallVec::new());
        Var(value.expect("bodies build valid operations"))
    }

    fn meta(&self, var: Var) -> Meta {
        *self.plan.meta(var.0).tensor().expect("bodies are about tensors")
    }
}

/// A step's attributes in a run with these inputs.
pub fn attributes<T>(step: &PlanStep, inputs: &[InputValue<T>]) -> Attributes {
    let mut attributes = step.attributes.clone();
    if let Some(index) = varying_attribute(step.operation)
        && let Some(Attribute::Ints(values)) = attributes.get_mut(index)
    {
        for (value, number) in values.iter_mut().zip(&step.varying) {
            *value = inputs[*number as usize].number().as_i64();
        }
    }
    attributes
}
