//! Cache keys of traces: equal for equal traces, and only for these.

use super::{Input, Trace};
use crate::instruction::{Attribute, Operand};
use crate::operation::Meta;
use crate::scalar::Scalar;

/// Returns a trace's key. The values of number inputs, which may differ in each run, are not part
/// of it; their kinds are.
pub fn key(trace: &Trace) -> Vec<u8> {
    let mut key = Vec::with_capacity(64 * trace.steps.len());
    let number = |key: &mut Vec<u8>, number: u64| key.extend(number.to_le_bytes());
    let meta = |key: &mut Vec<u8>, meta: &Meta| {
        key.extend([meta.dtype as u8, meta.shape.rank() as u8]);
        meta.shape.iter().for_each(|&length| key.extend((length as u64).to_le_bytes()));
    };
    let scalar = |key: &mut Vec<u8>, scalar: &Scalar| match scalar {
        Scalar::Bool(value) => key.extend([1, u8::from(*value)]),
        Scalar::Int(value) => {
            key.push(2);
            key.extend(value.to_le_bytes());
        }
        Scalar::Float(value) => {
            key.push(3);
            key.extend(value.to_bits().to_le_bytes());
        }
    };
    number(&mut key, trace.inputs.len() as u64);
    for input in &trace.inputs {
        match input {
            Input::Tensor(of) => {
                key.push(0);
                meta(&mut key, of);
            }
            Input::Number(Scalar::Bool(_)) => key.push(4),
            Input::Number(Scalar::Int(_)) => key.push(5),
            Input::Number(Scalar::Float(_)) => key.push(6),
        }
    }
    for step in &trace.steps {
        key.extend(step.operation.id.to_le_bytes());
        key.extend([step.operands.len() as u8, step.attributes.len() as u8]);
        for source in &step.operands {
            match source {
                Operand::Tensor(value) => {
                    key.push(0);
                    key.extend(value.to_le_bytes());
                }
                Operand::Scalar(constant) => scalar(&mut key, constant),
            }
        }
        let varies = step.operation.varying_attribute();
        for (index, attribute) in step.attributes.iter().enumerate() {
            match attribute {
                Attribute::None => key.push(0),
                Attribute::Int(value) => number(&mut key, *value as u64),
                Attribute::Float(value) => number(&mut key, value.to_bits()),
                Attribute::Bool(value) => key.push(u8::from(*value)),
                Attribute::DType(dtype) => key.push(*dtype as u8),
                Attribute::Ints(values) => {
                    let is_given = varies == Some(index) && !step.varying.is_empty();
                    key.extend([values.len() as u8, u8::from(is_given)]);
                    if !is_given {
                        values.iter().for_each(|&value| number(&mut key, value as u64));
                    }
                }
            }
        }
        step.varying.iter().for_each(|value| key.extend(value.to_le_bytes()));
    }
    number(&mut key, u64::MAX);
    trace.outputs.iter().for_each(|value| key.extend(value.to_le_bytes()));
    key
}
