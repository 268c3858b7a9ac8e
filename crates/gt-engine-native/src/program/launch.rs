//! Execution of a program.

use gt_ir::instruction::Operands;
use gt_ir::trace::{Source, TraceStep};
use gt_ir::{Operand, Scalar};
use gt_worker::plan::{InputValue, numbers};
use gt_worker::{Engine, EngineError};

use super::access::readable;
use super::group::{Granularity, GroupInput};
use super::tiles::{BoundGroup, TileResults};
use super::verified::VerifiedGroup;
use super::{NativeProgram, Unit};
use crate::NativeEngine;
use crate::tensor::Tensor;

/// The values of one execution.
struct ProgramValues<'a> {
    program: &'a NativeProgram,
    inputs: &'a mut [InputValue<Tensor>],
    computed: Vec<Option<Tensor>>,
}

impl NativeProgram {
    /// Executes the program with these inputs.
    ///
    /// # Errors
    /// The error of a step; all inputs are then unchanged.
    pub fn launch(
        &self,
        engine: &mut NativeEngine,
        inputs: &mut [InputValue<Tensor>],
    ) -> Result<Vec<Tensor>, EngineError> {
        let computed = vec![None; self.trace.steps.len()];
        let mut values = ProgramValues { program: self, inputs, computed };
        for (index, unit) in self.units.iter().enumerate() {
            match unit {
                // Computed together with the step that it belongs to.
                Unit::Single(step) if self.trace.steps[*step as usize].is_further() => {}
                Unit::Single(step) => {
                    let of = &self.trace.steps[*step as usize];
                    let operands = values.operands(of, Some(index));
                    let attributes = of.bind(numbers(values.inputs));
                    if of.operation.further.is_some() {
                        let outputs = self.trace.results(*step as usize);
                        let made =
                            engine.run_several(of.operation, operands, &attributes, &outputs)?;
                        for (place, made) in self.trace.places(*step as usize).into_iter().zip(made)
                        {
                            place
                                .into_iter()
                                .for_each(|place| values.computed[place] = Some(made.clone()));
                        }
                    } else {
                        let made = engine.run(of.operation, operands, &attributes, of.output)?;
                        values.store_step(*step, made);
                    }
                }
                Unit::Group(group) => values.run_group(engine, group, index)?,
            }
            for &value in &self.dying[index] {
                if let Some(made) = self.trace.step_of(value) {
                    values.computed[made] = None;
                }
            }
        }
        let output = |&value: &u32| values.tensor(value).clone();
        Ok(self.trace.outputs.iter().map(output).collect())
    }
}

impl ProgramValues<'_> {
    fn tensor(&self, value: u32) -> &Tensor {
        match self.program.trace.step_of(value) {
            Some(made) => self.computed[made]
                .as_ref()
                .expect("units are launched in order of their dependencies"),
            None => match &self.inputs[value as usize] {
                InputValue::Tensor(tensor) => tensor,
                _ => unreachable!("inputs are tensors, taken at their last use only"),
            },
        }
    }

    /// Returns a tensor for a unit to read: the last reference, if the value dies there and may be
    /// overwritten.
    fn take(&mut self, value: u32, unit: usize, is_only_use: bool) -> Tensor {
        let trace = &self.program.trace;
        if !is_only_use || !self.program.dying[unit].contains(&value) {
            return self.tensor(value).clone();
        }
        match trace.step_of(value) {
            Some(made) => self.computed[made]
                .take()
                .expect("units are launched in order of their dependencies"),
            None => {
                let dies = self.program.dies[value as usize];
                if dies && unit >= self.program.infallible_from {
                    let given = &mut self.inputs[value as usize];
                    if let InputValue::Tensor(tensor) = std::mem::replace(given, InputValue::Taken)
                    {
                        return tensor;
                    }
                }
                self.tensor(value).clone()
            }
        }
    }

    /// Returns the operands of a step; with a unit, takes those that die there.
    fn operands(&mut self, step: &TraceStep, unit: Option<usize>) -> Operands<Tensor> {
        let mut operands = Operands::new();
        for source in &step.operands {
            operands.push(match source {
                Operand::Scalar(scalar) => Operand::Scalar(*scalar),
                Operand::Tensor(value) => match self.number(*value) {
                    Some(number) => Operand::Scalar(number),
                    None => Operand::Tensor(match unit {
                        Some(unit) => {
                            let alike = |other: &&Source| *other == source;
                            let uses = step.operands.iter().filter(alike).count();
                            self.take(*value, unit, uses == 1)
                        }
                        None => self.tensor(*value).clone(),
                    }),
                },
            });
        }
        operands
    }

    fn number(&self, value: u32) -> Option<Scalar> {
        match self.inputs.get(value as usize) {
            Some(InputValue::Number(scalar)) => Some(*scalar),
            _ => None,
        }
    }

    /// Stores the result of a step.
    fn store_step(&mut self, step: u32, tensor: Tensor) {
        self.computed[step as usize] = Some(tensor);
    }

    fn store(&mut self, value: u32, tensor: Tensor) {
        let made = value as usize - self.program.trace.inputs.len();
        self.computed[made] = Some(tensor);
    }

    /// Returns whether the inputs that a group reduces are in memory in the order in which the
    /// group iterates over them. A single reduction would follow the order in memory.
    fn folds_in_order(&self, group: &VerifiedGroup) -> bool {
        group.folded_inputs().all(|source| match source {
            Operand::Tensor(value) if self.number(*value).is_none() => {
                self.tensor(*value).is_contiguous()
            }
            _ => true,
        })
    }

    /// Executes a group operation by operation.
    fn run_steps(
        &mut self,
        engine: &mut NativeEngine,
        group: &VerifiedGroup,
    ) -> Result<(), EngineError> {
        let mut steps = group.steps.clone();
        steps.sort_unstable();
        for &step in &steps {
            let of = &self.program.trace.steps[step as usize];
            let operands = self.operands(of, None);
            let attributes = of.bind(numbers(self.inputs));
            let made = engine.run(of.operation, operands, &attributes, of.output)?;
            self.store_step(step, made);
        }
        let count = self.program.trace.inputs.len() as u32;
        let is_kept = |value: u32| {
            group.outputs.iter().any(|output| output.value == value)
                || group.epilogues.iter().any(|epilogue| epilogue.value == value)
        };
        for step in steps.into_iter().filter(|step| !is_kept(step + count)) {
            self.computed[step as usize] = None;
        }
        Ok(())
    }

    fn run_group(
        &mut self,
        engine: &mut NativeEngine,
        group: &VerifiedGroup,
        unit: usize,
    ) -> Result<(), EngineError> {
        if !self.folds_in_order(group) {
            return self.run_steps(engine, group);
        }
        let mut given = Vec::with_capacity(group.inputs.len());
        for input in &group.inputs {
            given.push(match input.source {
                Operand::Scalar(scalar) => Operand::Scalar(scalar),
                Operand::Tensor(value) => match self.number(value) {
                    Some(number) => Operand::Scalar(number),
                    None => {
                        let alike = |other: &&GroupInput| other.source == input.source;
                        let uses = group.inputs.iter().filter(alike).count();
                        let tensor = self.take(value, unit, uses == 1);
                        Operand::Tensor(match input.granularity {
                            Granularity::PerElement => {
                                readable(&mut engine.threads, tensor, &group.shape, group.split)?
                            }
                            Granularity::PerRow => tensor,
                        })
                    }
                },
            });
        }
        let TileResults { results, totals } =
            BoundGroup::new(group, given)?.run(&mut engine.threads);
        for (output, result) in group.outputs.iter().zip(results) {
            self.store(output.value, result);
        }
        for (epilogue, totals) in group.epilogues.iter().zip(totals) {
            let count = group.shape.numel() / totals.len();
            self.store(epilogue.value, epilogue.folding.results(&totals, count, epilogue.meta)?);
        }
        Ok(())
    }
}
