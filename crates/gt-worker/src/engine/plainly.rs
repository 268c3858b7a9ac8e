//! Runs traces step by step.

use gt_ir::instruction::Operands;
use gt_ir::{Operand, Trace};

use super::{Engine, EngineError, run_several};
use crate::plan::{InputValue, numbers};

/// Runs a trace operation by operation, for engines without a compiler.
///
/// # Errors
/// The error of the first operation that fails.
pub fn launch_plainly<E: Engine>(
    engine: &mut E,
    trace: &Trace,
    last_uses: &[Option<u32>],
    inputs: &[InputValue<E::Tensor>],
) -> Result<Vec<E::Tensor>, EngineError> {
    let count = trace.inputs.len();
    let mut values: Vec<Option<E::Tensor>> = vec![None; trace.steps.len()];
    let kept = |value: usize| trace.outputs.contains(&(value as u32));
    for (index, step) in trace.steps.iter().enumerate() {
        if step.is_further() {
            continue; // It was made with the step that it belongs to.
        }
        let mut operands = Operands::new();
        for (place, source) in step.operands.iter().enumerate() {
            operands.push(match source {
                Operand::Scalar(scalar) => Operand::Scalar(*scalar),
                Operand::Tensor(value) if (*value as usize) < count => {
                    match &inputs[*value as usize] {
                        InputValue::Number(scalar) => Operand::Scalar(*scalar),
                        InputValue::Tensor(tensor) => Operand::Tensor(tensor.clone()),
                        InputValue::Taken => unreachable!("nothing is taken in a plain run"),
                    }
                }
                Operand::Tensor(value) => {
                    let made = *value as usize - count;
                    let again = step.operands[place + 1..].contains(source);
                    let dies = last_uses[*value as usize] == Some(index as u32)
                        && !again
                        && !kept(*value as usize);
                    let tensor = if dies { values[made].take() } else { values[made].clone() };
                    Operand::Tensor(tensor.expect("steps use what was made before"))
                }
            });
        }
        let attributes = step.bind(numbers(inputs));
        if step.operation.further.is_some() {
            let outputs = trace.results(index);
            let made = run_several(engine, step.operation, operands, &attributes, &outputs)?;
            for (place, tensor) in trace.places(index).into_iter().zip(made) {
                if let Some(place) = place {
                    values[place] = Some(tensor);
                }
            }
            continue;
        }
        let made = engine.run(step.operation, operands, &attributes, step.output)?;
        values[index] = Some(made);
    }
    let output = |&value: &u32| match (value as usize).checked_sub(count) {
        Some(made) => values[made].clone().expect("outputs are kept"),
        None => match &inputs[value as usize] {
            InputValue::Tensor(tensor) => tensor.clone(),
            _ => unreachable!("outputs are tensors"),
        },
    };
    Ok(trace.outputs.iter().map(output).collect())
}
