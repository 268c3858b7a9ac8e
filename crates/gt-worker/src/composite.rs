//! Runs composite operations: expanded step by step where the engine has no lowering.

use gt_ir::instruction::Operands;
use gt_ir::operation::Body;
use gt_ir::{Attributes, Meta, Operand, Operation, Trace};

use crate::engine::{Engine, EngineError, launch_plainly};
use crate::plan::InputValue;

/// Runs an operation: directly if the engine lowers it, or else as the steps of its body.
///
/// # Errors
/// The engine's.
pub fn run<E: Engine>(
    engine: &mut E,
    operation: &'static Operation,
    operands: Operands<E::Tensor>,
    metas: &[Operand<Meta>],
    attributes: &Attributes,
    output: Meta,
) -> Result<E::Tensor, EngineError> {
    if !matches!(operation.body, Body::Composite(_)) || engine.lowers(operation) {
        return engine.run(operation, operands, attributes, output);
    }
    let lowers = |operation| engine.lowers(operation);
    let trace = Trace::of_operation(operation, metas, attributes, &lowers)
        .map_err(|error| EngineError::Other(error.to_string()))?;
    debug_assert_eq!(
        trace.meta(trace.outputs[0]),
        Operand::Tensor(output),
        "{} expands to what it infers",
        operation.name
    );
    let inputs: Vec<InputValue<E::Tensor>> = operands
        .into_iter()
        .filter_map(|operand| match operand {
            Operand::Tensor(tensor) => Some(InputValue::Tensor(tensor)),
            Operand::Scalar(_) => None,
        })
        .collect();
    let mut made = launch_plainly(engine, &trace, &trace.last_uses(), &inputs)?;
    made.pop().ok_or_else(|| EngineError::Other(format!("{} gave nothing", operation.name)))
}
