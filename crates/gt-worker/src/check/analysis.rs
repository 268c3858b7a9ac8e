//! Error analysis of a trace: it is evaluated once more, for the bounds of its outputs.

use gt_ir::operation::{ErrorBound, Graph, Var, int, ints};
use gt_ir::shape::axis;
use gt_ir::trace::Trace;
use gt_ir::{Attributes, Operand, TensorData};

use super::compare::{Allowed, Ties};
use super::eager::Eager;
use super::operands::{Loses, Use};
use super::rules::bounds;
use super::terms::{Pair, unknown, wide};
use crate::engine::{Engine, EngineError};
use crate::plan::{InputValue, numbers};

/// For each output of a trace, how far it may be from what these inputs give.
///
/// # Errors
/// The engine's, of running the trace's operations once more; memory may be short for bounds.
pub fn allowed<E: Engine>(
    engine: &mut E,
    trace: &Trace,
    last_uses: &[Option<u32>],
    inputs: &[InputValue<E::Tensor>],
) -> Result<Vec<Allowed>, EngineError> {
    let mut analysis = Analysis {
        eager: Eager::new(engine),
        trace,
        values: vec![None; trace.values()],
        ties: (0..trace.values()).map(|_| None).collect(),
    };
    analysis.take(inputs);
    for (index, step) in trace.steps.iter().enumerate() {
        if !step.is_further() {
            analysis.step(index, &step.bind(numbers(inputs)))?;
        }
        for (value, last) in last_uses.iter().enumerate() {
            if *last == Some(index as u32) && !trace.outputs.contains(&(value as u32)) {
                analysis.release(value);
            }
        }
    }
    trace.outputs.iter().map(|&output| analysis.output(output as usize)).collect()
}

struct Analysis<'a, E: Engine> {
    eager: Eager<'a, E>,
    trace: &'a Trace,
    values: Vec<Option<Operand<Pair>>>,
    ties: Vec<Option<Ties>>,
}

impl<E: Engine> Analysis<'_, E> {
    /// Takes the inputs, which are the same in every evaluation.
    fn take(&mut self, inputs: &[InputValue<E::Tensor>]) {
        for (value, input) in inputs.iter().enumerate() {
            self.values[value] = Some(match (input, self.trace.meta(value as u32)) {
                (InputValue::Tensor(tensor), Operand::Tensor(meta)) => {
                    let value = self.eager.hold(tensor.clone(), meta);
                    Operand::Tensor(Pair { value, bound: None })
                }
                (InputValue::Number(scalar), _) => Operand::Scalar(*scalar),
                _ => unreachable!("nothing is taken in a plain run"),
            });
        }
    }

    /// Runs a step, and finds the bounds of its results.
    fn step(&mut self, index: usize, attributes: &Attributes) -> Result<(), EngineError> {
        let step = &self.trace.steps[index];
        let mark = self.eager.mark();
        let value = |value: u32| self.values[value as usize].expect("steps use earlier values");
        let operands: Vec<Operand<Pair>> = (step.operands.iter())
            .map(|source| match source {
                Operand::Scalar(scalar) => Operand::Scalar(*scalar),
                Operand::Tensor(number) => value(*number),
            })
            .collect();
        let plain: Vec<Operand<Var>> = operands.iter().map(|of| of.map(|of| of.value)).collect();
        let result = self.eager.emit(step.operation, &plain, attributes.clone());
        self.failed()?;
        let places = self.trace.places(index);
        let operation = step.operation;
        let factors = self.eager.engine().factors();
        let loses = Loses { nominal: None, factors };
        let of = Use { operation, operands: &operands, attributes, result, loses };
        let mut found = bounds(&mut self.eager, &of, places.len());
        match self.eager.take_error() {
            Some(error @ EngineError::OutOfMemory { .. }) => return Err(error),
            // The engine cannot evaluate it, so these results have no bounds.
            Some(_) => {
                let results = (0..places.len() as u32).map(|place| result.result(place));
                found = results.map(|of| Some(unknown(&mut self.eager, of))).collect();
                self.failed()?;
            }
            None => {}
        }
        let mut kept = Vec::new();
        for (place, bound) in found.into_iter().enumerate() {
            let Some(step) = places[place] else { continue };
            let number = self.trace.value_of(step) as usize;
            let value = result.result(place as u32);
            kept.push(value);
            kept.extend(bound);
            self.values[number] = Some(Operand::Tensor(Pair { value, bound }));
            if self.trace.outputs.contains(&(number as u32)) {
                self.ties[number] = self.chosen_among(&of, place)?;
            }
        }
        self.eager.release_since(mark, &kept);
        Ok(())
    }

    fn failed(&mut self) -> Result<(), EngineError> {
        self.eager.take_error().map_or(Ok(()), Err)
    }

    fn release(&mut self, value: usize) {
        if let Some(Operand::Tensor(Pair { value, bound })) = self.values[value] {
            self.eager.release(value);
            bound.into_iter().for_each(|bound| self.eager.release(bound));
        }
    }

    /// The values among which a result chooses by their index, if it does and they are uncertain.
    fn chosen_among(&mut self, of: &Use, place: usize) -> Result<Option<Ties>, EngineError> {
        // The index of an element: over these axes, or along this one.
        let along = match (of.operation.facts.bound, place) {
            (ErrorBound::IndexOf { .. }, 0) => ints(of.attributes, 0).first().copied(),
            (ErrorBound::Ordered { has_ties: true }, 1) => Some(int(of.attributes, 0)),
            _ => return Ok(None),
        };
        let Some(&Operand::Tensor(Pair { value, bound: Some(bound) })) = of.operands.first() else {
            return Ok(None);
        };
        let (rank, name) = (self.eager.meta(value).shape.rank(), of.operation.name);
        let axis = along.and_then(|along| axis(along, rank, name).ok());
        let value = *wide(&mut self.eager, value.into()).tensor().expect("of a tensor");
        let (values, bounds) = (self.read(value)?, self.read(bound)?);
        Ok(Some(Ties { values, bounds, axis }))
    }

    fn output(&mut self, number: usize) -> Result<Allowed, EngineError> {
        let Some(Operand::Tensor(pair)) = self.values[number] else {
            unreachable!("outputs are tensors")
        };
        let bounds = pair.bound.map(|bound| self.read(bound)).transpose()?;
        Ok(Allowed { bounds, ties: self.ties[number].take() })
    }

    fn read(&mut self, var: Var) -> Result<TensorData, EngineError> {
        self.failed()?;
        let tensor = self.eager.tensor(var).expect("it was made").clone();
        self.eager.engine().read(&tensor)
    }
}
