//! A graph whose operations are run on an engine as they are emitted.

use gt_ir::instruction::Operands;
use gt_ir::operation::{Body, Graph, Var};
use gt_ir::{Attributes, DType, Meta, Operand, Operation, Shape};

use crate::engine::{Engine, EngineError, run_several};

/// Values on an engine, numbered as they are made.
///
/// After a failure nothing more is run until [`Eager::take_error`].
pub struct Eager<'a, E: Engine> {
    engine: &'a mut E,
    values: Vec<(Meta, Option<E::Tensor>)>,
    error: Option<EngineError>,
}

impl<'a, E: Engine> Eager<'a, E> {
    pub fn new(engine: &'a mut E) -> Eager<'a, E> {
        Eager { engine, values: Vec::new(), error: None }
    }

    pub fn engine(&mut self) -> &mut E {
        self.engine
    }

    /// Returns the value of an existing tensor.
    pub fn hold(&mut self, tensor: E::Tensor, meta: Meta) -> Var {
        self.push(meta, Some(tensor))
    }

    fn push(&mut self, meta: Meta, tensor: Option<E::Tensor>) -> Var {
        self.values.push((meta, tensor));
        Var(self.values.len() as u32 - 1)
    }

    /// A value's tensor.
    pub fn tensor(&self, var: Var) -> Option<&E::Tensor> {
        self.values[var.0 as usize].1.as_ref()
    }

    /// Returns the number of values, which is the number of the next one.
    pub fn mark(&self) -> u32 {
        self.values.len() as u32
    }

    /// Releases the values made since a mark, but for these.
    pub fn release_since(&mut self, mark: u32, kept: &[Var]) {
        for number in mark..self.mark() {
            if !kept.contains(&Var(number)) {
                self.release(Var(number));
            }
        }
    }

    pub fn release(&mut self, var: Var) {
        self.values[var.0 as usize].1 = None;
    }

    /// The first failure since the last call.
    pub fn take_error(&mut self) -> Option<EngineError> {
        self.error.take()
    }

    fn compute(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: &Attributes,
        results: &[Meta],
    ) -> Result<Vec<E::Tensor>, EngineError> {
        let mut given = Operands::new();
        for operand in operands {
            given.push(match operand {
                Operand::Scalar(scalar) => Operand::Scalar(*scalar),
                Operand::Tensor(var) => {
                    Operand::Tensor(self.tensor(*var).cloned().ok_or_else(|| {
                        EngineError::Other(format!("an operand of {} is gone", operation.name))
                    })?)
                }
            });
        }
        if operation.further.is_some() {
            return run_several(self.engine, operation, given, attributes, results);
        }
        Ok(vec![self.engine.run(operation, given, attributes, results[0])?])
    }
}

impl<E: Engine> Graph for Eager<'_, E> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        if let Body::Composite(body) = operation.body
            && !self.engine.lowers(operation)
        {
            return body(self, operands, &attributes);
        }
        let metas: Vec<Operand<Meta>> =
            operands.iter().map(|operand| operand.map(|&var| self.meta(var))).collect();
        let results = match operation.results(&metas, &attributes) {
            Ok(results) => results,
            Err(error) => {
                self.error.get_or_insert(EngineError::Other(error.to_string()));
                let nothing = Shape::new(&[]).expect("a shape without axes");
                return self.push(Meta::new(DType::F64, nothing), None);
            }
        };
        let made = if self.error.is_none() {
            self.compute(operation, operands, &attributes, &results)
        } else {
            Ok(Vec::new())
        };
        let mut made = made.unwrap_or_else(|error| {
            self.error = Some(error);
            Vec::new()
        });
        made.reverse();
        let first = self.mark();
        for meta in results {
            let tensor = made.pop();
            self.push(meta, tensor);
        }
        Var(first)
    }

    fn meta(&self, var: Var) -> Meta {
        self.values[var.0 as usize].0
    }
}
