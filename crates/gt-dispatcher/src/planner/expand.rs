//! Expands composite operations and plans their steps.

use gt_ir::instruction::Instruction;
use gt_ir::operation::Body;
use gt_ir::ops::shape;
use gt_ir::template::varying_numbers;
use gt_ir::trace::{Input, Source, Trace, TraceStep};
use gt_ir::{Attribute, Operand, Operation, Scalar, TensorId};
use smallvec::{SmallVec, smallvec};

use super::Planner;
use super::catalogue::Catalogue;
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
    ) -> Result<(), String> {
        let operation = instruction.operation;
        let varies = !varying_numbers(operation, &instruction.attributes).is_empty();
        let takes_numbers = instruction.operands.iter().any(|operand| operand.scalar().is_some());
        if varies || takes_numbers && !operation.open_numbers {
            catalogue.varying.fix(instruction.output);
        }
        let CompositeTrace { trace, mut values, result } =
            CompositeTrace::of(catalogue, instruction);
        let mut made = Vec::new();
        for (index, step) in trace.steps.iter().enumerate().filter(|(_, step)| !step.is_further()) {
            let results = trace.recorded_results(index);
            let output = catalogue.name();
            (1..results.len()).for_each(|_| {
                catalogue.name();
            });
            open(catalogue, instruction, (step, output), &values);
            let names = (0..results.len() as u64).map(|index| output.after(index));
            values.extend(names.clone().map(BodyValue::Tensor));
            made.extend(names);
            let operand = |source: &Source| match *source {
                Operand::Tensor(value) => values[value as usize].operand(),
                Operand::Scalar(scalar) => Operand::Scalar(scalar),
            };
            let step = Instruction {
                operation: step.operation,
                output,
                results,
                operands: step.operands.iter().map(operand).collect(),
                attributes: step.attributes.clone(),
                source: instruction.source,
                signal: instruction.signal,
            };
            if let Err(error) = self.run(catalogue, streams, step) {
                made.into_iter().for_each(|value| catalogue.free(value, streams));
                return Err(error);
            }
        }
        let BodyValue::Tensor(result) = values[result as usize] else {
            unreachable!("bodies return tensors")
        };
        for value in made.into_iter().filter(|value| *value != result) {
            catalogue.free(value, streams);
        }
        catalogue.rename(result, instruction.output);
        Ok(())
    }
}

/// The value of a trace's input or step.
#[derive(Clone, Copy)]
enum BodyValue {
    Tensor(TensorId),
    /// A number, which is this operand of the composite.
    Number(usize, Scalar),
}

impl BodyValue {
    fn operand(&self) -> Operand<TensorId> {
        match *self {
            BodyValue::Tensor(id) => Operand::Tensor(id),
            BodyValue::Number(_, scalar) => Operand::Scalar(scalar),
        }
    }
}

/// The steps of a composite.
struct CompositeTrace {
    trace: Trace,
    /// The values of the trace's inputs.
    values: Vec<BodyValue>,
    /// The value of the trace that is the composite's result; made by a step.
    result: u32,
}

impl CompositeTrace {
    fn of(catalogue: &Catalogue, instruction: &Instruction) -> CompositeTrace {
        let Instruction { operation, attributes, .. } = instruction;
        let (mut trace, mut values) = (Trace::default(), Vec::new());
        let mut operands: SmallVec<[Source; 3]> = SmallVec::new();
        for (index, operand) in instruction.operands.iter().enumerate() {
            let (value, input) = match *operand {
                Operand::Tensor(id) => {
                    (BodyValue::Tensor(id), Input::Tensor(catalogue.placed(id).meta))
                }
                Operand::Scalar(scalar) if operation.open_numbers => {
                    (BodyValue::Number(index, scalar), Input::Number(scalar))
                }
                Operand::Scalar(scalar) => {
                    operands.push(Operand::Scalar(scalar));
                    continue;
                }
            };
            values.push(value);
            operands.push(Operand::Tensor(trace.input(input)));
        }
        // The composites among its steps are planned as such.
        let is_step = |of: &'static Operation| of.id != operation.id;
        let attributes = attributes.clone();
        let result = trace.push(&is_step, operation, operands, attributes, SmallVec::new());
        let mut result = result.expect("the instruction was checked");
        if trace.step_of(result).is_none() {
            // The result is one of the operands: it needs a name of its own.
            let of = *trace.meta(result).tensor().expect("bodies return tensors");
            let (source, dims) = (smallvec![Operand::Tensor(result)], Attribute::dims(&of.shape));
            let copy = trace.push(&is_step, &shape::RESHAPE, source, smallvec![dims], smallvec![]);
            result = copy.expect("a shape fits itself");
        }
        CompositeTrace { trace, values, result }
    }
}

/// Registers which operands of a step are numbers of the composite; `output` is its first result.
fn open(
    catalogue: &mut Catalogue,
    composite: &Instruction,
    (step, output): (&TraceStep, TensorId),
    values: &[BodyValue],
) {
    let number = |(operand, source): (usize, &Source)| match values[*source.tensor()? as usize] {
        BodyValue::Number(index, _) => Some((operand, index)),
        BodyValue::Tensor(_) => None,
    };
    let numbers: SmallVec<_> = step.operands.iter().enumerate().filter_map(number).collect();
    if numbers.is_empty() {
        return;
    }
    let composite = composite.output;
    match step.operation.body {
        // The numbers of its own steps would have to be traced back through it.
        Body::Composite(_) => catalogue.varying.fix(composite),
        _ => catalogue.varying.add_composite_step(output, CompositeStep { composite, numbers }),
    }
}
