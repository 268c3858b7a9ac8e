//! Expands composite operations and plans their steps.

use gt_ir::instruction::{Instruction, Operands};
use gt_ir::operation::{Body, Graph};
use gt_ir::ops::shape;
use gt_ir::template::varying_numbers;
use gt_ir::{Attribute, Attributes, Meta, Operand, Operation, Scalar, TensorId, Var};
use smallvec::{SmallVec, smallvec};

use super::Planner;
use super::catalogue::{Catalogue, Metas};
use super::moving::Opened;
use super::streams::Streams;

impl Planner {
    /// Plans the steps of a composite in its place. Where its body looks at numbers, the plan holds
    /// for these only.
    pub(super) fn expand(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        body: fn(&mut dyn Graph, &[Operand<Var>], &Attributes) -> Var,
    ) -> Result<(), String> {
        let mut expansion = Expansion {
            planner: self,
            catalogue,
            streams,
            instruction,
            values: Vec::new(),
            error: None,
        };
        let varies = !varying_numbers(instruction.operation, &instruction.attributes).is_empty();
        let takes_numbers = instruction.operands.iter().any(|operand| operand.scalar().is_some());
        let are_open = instruction.operation.open_numbers;
        if varies || takes_numbers && !are_open {
            expansion.catalogue.moving.is_fixed(instruction.output);
        }
        let operands: SmallVec<[Operand<Var>; 3]> = instruction
            .operands
            .iter()
            .enumerate()
            .map(|(index, operand)| match *operand {
                Operand::Tensor(id) => {
                    let meta = expansion.catalogue.placed(id).meta;
                    Operand::Tensor(expansion.push(Value::Tensor(id, meta)))
                }
                Operand::Scalar(scalar) if are_open => {
                    Operand::Tensor(expansion.push(Value::Number(index, scalar)))
                }
                Operand::Scalar(scalar) => Operand::Scalar(scalar),
            })
            .collect();
        let given = expansion.values.len();
        let mut result = body(&mut expansion, &operands, &instruction.attributes);
        if (result.0 as usize) < given {
            // The result is one of the operands: it needs a name of its own.
            let dims = Attribute::dims(&expansion.meta(result).shape);
            result = expansion.emit(&shape::RESHAPE, &[Operand::Tensor(result)], smallvec![dims]);
        }
        if let Some(error) = expansion.error {
            return Err(error);
        }
        let values = expansion.values;
        let made = values[given..].iter().filter_map(Value::tensor);
        let (result, _) = values[result.0 as usize].tensor().expect("bodies give tensors");
        for (value, _) in made.filter(|(value, _)| *value != result) {
            catalogue.free(value, streams);
        }
        catalogue.rename(result, instruction.output);
        Ok(())
    }
}

/// What a variable of a body stands for.
#[derive(Clone, Copy)]
enum Value {
    /// The result of a failed step has a shape all the same.
    Tensor(TensorId, Meta),
    /// A number, which is this operand of the composite.
    Number(usize, Scalar),
}

impl Value {
    fn tensor(&self) -> Option<(TensorId, Meta)> {
        match *self {
            Value::Tensor(id, meta) => Some((id, meta)),
            Value::Number(..) => None,
        }
    }

    /// As an operand, of which a tensor is told by `tell`.
    fn operand<T>(&self, tell: fn(TensorId, Meta) -> T) -> Operand<T> {
        match *self {
            Value::Tensor(id, meta) => Operand::Tensor(tell(id, meta)),
            Value::Number(_, scalar) => Operand::Scalar(scalar),
        }
    }
}

/// Plans each step of a composite as its body emits it.
struct Expansion<'a> {
    planner: &'a mut Planner,
    catalogue: &'a mut Catalogue,
    streams: &'a mut Streams,
    instruction: &'a Instruction,
    /// The operands and results of the steps.
    values: Vec<Value>,
    error: Option<String>,
}

impl Expansion<'_> {
    fn push(&mut self, value: Value) -> Var {
        self.values.push(value);
        Var(self.values.len() as u32 - 1)
    }

    /// The operands of a step, each tensor told by `tell`.
    fn operands<T, C>(&self, operands: &[Operand<Var>], tell: fn(TensorId, Meta) -> T) -> C
    where
        C: FromIterator<Operand<T>>,
    {
        let operand = |operand: &Operand<Var>| match *operand {
            Operand::Tensor(var) => self.values[var.0 as usize].operand(tell),
            Operand::Scalar(scalar) => Operand::Scalar(scalar),
        };
        operands.iter().map(operand).collect()
    }

    /// Registers which operands of a step are numbers of the composite.
    fn open(&mut self, operation: &Operation, operands: &[Operand<Var>], output: TensorId) {
        let number =
            |(operand, var): (usize, &Operand<Var>)| match self.values[var.tensor()?.0 as usize] {
                Value::Number(given, _) => Some((operand, given)),
                Value::Tensor(..) => None,
            };
        let numbers: SmallVec<_> = operands.iter().enumerate().filter_map(number).collect();
        if numbers.is_empty() {
            return;
        }
        let composite = self.instruction.output;
        match operation.body {
            // Its own steps would have to be traced back through it.
            Body::Composite(_) => self.catalogue.moving.is_fixed(composite),
            _ => self.catalogue.moving.opens(output, Opened { composite, numbers }),
        }
    }
}

impl Graph for Expansion<'_> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let output = self.catalogue.name();
        self.open(operation, operands, output);
        let metas: Metas = self.operands(operands, |_, meta| meta);
        let results = operation.results(&metas, &attributes);
        let results = results.expect("composites build valid operations");
        let operands: Operands = self.operands(operands, |id, _| id);
        let (source, signal) = (self.instruction.source, self.instruction.signal);
        for _ in 1..results.len() {
            self.catalogue.name();
        }
        let made = results.clone();
        let step = Instruction { operation, output, results, operands, attributes, source, signal };
        if let Err(error) = self.planner.run(self.catalogue, self.streams, step) {
            self.error = Some(error);
        }
        let first = Var(self.values.len() as u32);
        for (index, meta) in made.into_iter().enumerate() {
            self.push(Value::Tensor(output.after(index as u64), meta));
        }
        first
    }

    fn meta(&self, var: Var) -> Meta {
        let (_, meta) = self.values[var.0 as usize].tensor().expect("bodies are about tensors");
        meta
    }
}
