//! Runs composite operations: expanded step by step where the engine has no lowering.

use gt_ir::instruction::Operands;
use gt_ir::operation::Body;
use gt_ir::{Attributes, Graph, Meta, Operand, Operation, Var};

use crate::engine::{Engine, EngineError};

/// Runs an operation: directly if the engine lowers it, or else as the steps of its body.
pub fn run<E: Engine>(
    engine: &mut E,
    operation: &'static Operation,
    operands: Operands<E::Tensor>,
    metas: &[Operand<Meta>],
    attributes: &Attributes,
    output: Meta,
) -> Result<E::Tensor, EngineError> {
    let Body::Composite(body) = operation.body else {
        return engine.run(operation, operands, attributes, output);
    };
    if engine.lowers(operation) {
        return engine.run(operation, operands, attributes, output);
    }
    let mut steps = CompositeGraph { engine, values: Vec::new(), error: None };
    let mut inputs = Vec::with_capacity(operands.len());
    for (operand, meta) in operands.into_iter().zip(metas) {
        inputs.push(match (operand, meta) {
            (Operand::Tensor(tensor), Operand::Tensor(meta)) => {
                Operand::Tensor(steps.push(Some(tensor), *meta))
            }
            (Operand::Scalar(scalar), _) => Operand::Scalar(scalar),
            (Operand::Tensor(_), Operand::Scalar(_)) => unreachable!("metas follow the operands"),
        });
    }
    let result = body(&mut steps, &inputs, attributes);
    if let Some(error) = steps.error {
        return Err(error);
    }
    let (tensor, meta) = steps.values.swap_remove(result.0 as usize);
    debug_assert_eq!(meta, output, "{} expands to what it infers", operation.name);
    tensor.ok_or_else(|| EngineError::Other(format!("{} gave nothing", operation.name)))
}

/// Runs an operation with several results.
///
/// # Errors
/// The engine's.
pub fn run_several<E: Engine>(
    engine: &mut E,
    operation: &'static Operation,
    operands: Operands<E::Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<E::Tensor>, EngineError> {
    let made = engine.run_several(operation, operands, attributes, outputs)?;
    if made.len() == outputs.len() {
        return Ok(made);
    }
    let (name, count, expected) = (operation.name, made.len(), outputs.len());
    Err(EngineError::Other(format!("{name} gave {count} results, expected {expected}")))
}

/// The values so far. After an error only shapes are inferred.
struct CompositeGraph<'a, E: Engine> {
    engine: &'a mut E,
    values: Vec<(Option<E::Tensor>, Meta)>,
    error: Option<EngineError>,
}

impl<E: Engine> CompositeGraph<'_, E> {
    fn push(&mut self, tensor: Option<E::Tensor>, meta: Meta) -> Var {
        self.values.push((tensor, meta));
        Var(self.values.len() as u32 - 1)
    }
}

impl<E: Engine> CompositeGraph<'_, E> {
    /// Adds the results of one operation; returns the first.
    fn push_all(&mut self, made: Vec<Option<E::Tensor>>, metas: &[Meta]) -> Var {
        let first = Var(self.values.len() as u32);
        for (tensor, meta) in made.into_iter().zip(metas) {
            self.push(tensor, *meta);
        }
        first
    }
}

impl<E: Engine> Graph for CompositeGraph<'_, E> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let metas: Vec<_> =
            operands.iter().map(|operand| operand.map(|&var| self.meta(var))).collect();
        let results =
            operation.results(&metas, &attributes).expect("bodies build valid operations");
        let meta = results[0];
        if self.error.is_some() {
            return self.push_all(vec![None; results.len()], &results);
        }
        let inputs: Operands<E::Tensor> = operands
            .iter()
            .map(|operand| {
                operand.map(|var| self.values[var.0 as usize].0.clone().expect("no error so far"))
            })
            .collect();
        let made = if operation.further.is_some() {
            run_several(self.engine, operation, inputs, &attributes, &results)
        } else {
            run(self.engine, operation, inputs, &metas, &attributes, meta).map(|made| vec![made])
        };
        match made {
            Ok(made) => self.push_all(made.into_iter().map(Some).collect(), &results),
            Err(error) => {
                self.error = Some(error);
                self.push_all(vec![None; results.len()], &results)
            }
        }
    }

    fn meta(&self, var: Var) -> Meta {
        self.values[var.0 as usize].1
    }
}
