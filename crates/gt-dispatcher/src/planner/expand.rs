//! Expands composite operations and plans their steps.

use gt_ir::instruction::{Instruction, Operands};
use gt_ir::operation::{Body, Graph};
use gt_ir::ops::shape;
use gt_ir::template::varying_numbers;
use gt_ir::{Attribute, Attributes, Meta, Operand, Operation, Scalar, TensorId, Var};
use smallvec::{SmallVec, smallvec};

use super::Planner;
use super::catalogue::{Catalogue, OperandMetas};
use super::streams::Streams;
use super::varying_slices::CompositeStep;

impl Planner {
    /// Plans the steps of a composite instead of the composite. Where its body reads numbers, the
    /// plan is valid for these numbers only.
    pub(super) fn expand(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        body: fn(&mut dyn Graph, &[Operand<Var>], &Attributes) -> Var,
    ) -> Result<(), String> {
        let mut expansion = BodyExpansion {
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
            expansion.catalogue.varying.fix(instruction.output);
        }
        let operands: SmallVec<[Operand<Var>; 3]> = instruction
            .operands
            .iter()
            .enumerate()
            .map(|(index, operand)| match *operand {
                Operand::Tensor(id) => {
                    let meta = expansion.catalogue.placed(id).meta;
                    Operand::Tensor(expansion.push(BodyValue::Tensor(id, meta)))
                }
                Operand::Scalar(scalar) if are_open => {
                    Operand::Tensor(expansion.push(BodyValue::Number(index, scalar)))
                }
                Operand::Scalar(scalar) => Operand::Scalar(scalar),
            })
            .collect();
        let operand_count = expansion.values.len();
        let mut result = body(&mut expansion, &operands, &instruction.attributes);
        if (result.0 as usize) < operand_count {
            // The result is one of the operands: it needs a name of its own.
            let dims = Attribute::dims(&expansion.meta(result).shape);
            result = expansion.emit(&shape::RESHAPE, &[Operand::Tensor(result)], smallvec![dims]);
        }
        if let Some(error) = expansion.error {
            return Err(error);
        }
        let values = expansion.values;
        let made = values[operand_count..].iter().filter_map(BodyValue::tensor);
        let (result, _) = values[result.0 as usize].tensor().expect("bodies return tensors");
        for (value, _) in made.filter(|(value, _)| *value != result) {
            catalogue.free(value, streams);
        }
        catalogue.rename(result, instruction.output);
        Ok(())
    }
}

/// The value of a variable of a body.
#[derive(Clone, Copy)]
enum BodyValue {
    /// A tensor. The result of a failed step has a shape as well.
    Tensor(TensorId, Meta),
    /// A number, which is this operand of the composite.
    Number(usize, Scalar),
}

impl BodyValue {
    fn tensor(&self) -> Option<(TensorId, Meta)> {
        match *self {
            BodyValue::Tensor(id, meta) => Some((id, meta)),
            BodyValue::Number(..) => None,
        }
    }

    /// Returns the value as an operand; `describe` converts tensors.
    fn operand<T>(&self, describe: fn(TensorId, Meta) -> T) -> Operand<T> {
        match *self {
            BodyValue::Tensor(id, meta) => Operand::Tensor(describe(id, meta)),
            BodyValue::Number(_, scalar) => Operand::Scalar(scalar),
        }
    }
}

/// Plans each step of a composite as its body emits it.
struct BodyExpansion<'a> {
    planner: &'a mut Planner,
    catalogue: &'a mut Catalogue,
    streams: &'a mut Streams,
    instruction: &'a Instruction,
    /// The operands and results of the steps.
    values: Vec<BodyValue>,
    error: Option<String>,
}

impl BodyExpansion<'_> {
    fn push(&mut self, value: BodyValue) -> Var {
        self.values.push(value);
        Var(self.values.len() as u32 - 1)
    }

    /// Returns the operands of a step; `describe` converts tensors.
    fn operands<T, C>(&self, operands: &[Operand<Var>], describe: fn(TensorId, Meta) -> T) -> C
    where
        C: FromIterator<Operand<T>>,
    {
        let operand = |operand: &Operand<Var>| match *operand {
            Operand::Tensor(var) => self.values[var.0 as usize].operand(describe),
            Operand::Scalar(scalar) => Operand::Scalar(scalar),
        };
        operands.iter().map(operand).collect()
    }

    /// Registers which operands of a step are numbers of the composite.
    fn open(&mut self, operation: &Operation, operands: &[Operand<Var>], output: TensorId) {
        let number =
            |(operand, var): (usize, &Operand<Var>)| match self.values[var.tensor()?.0 as usize] {
                BodyValue::Number(index, _) => Some((operand, index)),
                BodyValue::Tensor(..) => None,
            };
        let numbers: SmallVec<_> = operands.iter().enumerate().filter_map(number).collect();
        if numbers.is_empty() {
            return;
        }
        let composite = self.instruction.output;
        match operation.body {
            // The numbers of its own steps would have to be traced back through it.
            Body::Composite(_) => self.catalogue.varying.fix(composite),
            _ => self
                .catalogue
                .varying
                .add_composite_step(output, CompositeStep { composite, numbers }),
        }
    }
}

impl Graph for BodyExpansion<'_> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let output = self.catalogue.name();
        self.open(operation, operands, output);
        let metas: OperandMetas = self.operands(operands, |_, meta| meta);
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
            self.push(BodyValue::Tensor(output.after(index as u64), meta));
        }
        first
    }

    fn meta(&self, var: Var) -> Meta {
        let (_, meta) = self.values[var.0 as usize].tensor().expect("bodies use tensors");
        meta
    }
}
