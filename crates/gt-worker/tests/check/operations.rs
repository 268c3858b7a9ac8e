//! Every operation on rounded operands: what float64 gives is no difference, another number is.

use gt_engine_native::NativeEngine;
use gt_ir::operation::{Sample, SampleOperand};
use gt_ir::ops::{ALL, binary};
use gt_ir::trace::{Input, Trace};
use gt_ir::{DType, Operand, Operation, Scalar, TensorData};
use gt_worker::Engine;
use gt_worker::check::{allowed, difference};
use gt_worker::plan::InputValue;
use smallvec::smallvec;

use crate::check::honest::{cast, found, given, run, widened};
use crate::check::random::Dice;

/// Operations whose bounds are estimated for all elements at once, or say nothing.
const ESTIMATED: &[&str] =
    &["nextafter", "frexp", "draw_poisson", "draw_binomial", "rand", "randn"];

/// A trace of one operation on floats that were multiplied before, so that they are uncertain.
fn trace_of(
    operation: &'static Operation,
    sample: &Sample,
) -> Option<(Trace, Vec<InputValue<TensorData>>)> {
    let mut dice = Dice::new(u64::from(operation.id));
    let mut inputs = Vec::new();
    let mut values = Vec::new();
    for operand in &sample.operands {
        if let SampleOperand::Tensor { meta, low, high } = *operand {
            let mut bytes = Vec::new();
            for _ in 0..meta.shape.numel() {
                let value = low + (high - low) * dice.fraction();
                let value = if meta.dtype.is_exact() { value.floor() } else { value };
                TensorData::encode(meta.dtype, Scalar::Float(value), &mut bytes);
            }
            inputs.push(Input::Tensor(meta));
            values.push(InputValue::Tensor(TensorData::new(meta.dtype, meta.shape, bytes.into())?));
        }
    }
    let mut trace = Trace::new(inputs);
    let lowers = |operation: &'static Operation| NativeEngine::new(1).lowers(operation);
    let mut operands = smallvec![];
    let mut next = 0;
    for operand in &sample.operands {
        operands.push(match operand {
            SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
            SampleOperand::Tensor { meta, .. } => {
                next += 1;
                let value = Operand::Tensor(next - 1);
                if meta.dtype.is_exact() {
                    value
                } else {
                    let factor = Operand::Scalar(Scalar::Float(0.9375));
                    let once = smallvec![value, Operand::Scalar(Scalar::Float(1.03125))];
                    let once = trace.push(&lowers, &binary::MUL, once, smallvec![], smallvec![]);
                    let twice = smallvec![Operand::Tensor(once.ok()?), factor];
                    let twice = trace.push(&lowers, &binary::MUL, twice, smallvec![], smallvec![]);
                    Operand::Tensor(twice.ok()?)
                }
            }
        });
    }
    let made = trace.push(&lowers, operation, operands, sample.attributes.clone(), smallvec![]);
    let made = made.ok()?;
    trace.outputs = (made..trace.values() as u32).collect();
    Some((trace, values))
}

#[test]
fn float64_is_no_difference() {
    let mut engine = NativeEngine::new(1);
    let mut wrong = Vec::new();
    for operation in ALL {
        if ESTIMATED.contains(&operation.name) || operation.name == "further" {
            continue;
        }
        for sample in (operation.samples)() {
            let Some((trace, values)) = trace_of(operation, &sample) else { continue };
            let Some(wide) = widened(&trace) else { continue };
            let wide_values: Vec<_> = values
                .iter()
                .zip(&wide.inputs)
                .map(|(value, input)| match (value, input) {
                    (InputValue::Tensor(data), Input::Tensor(meta)) => {
                        InputValue::Tensor(cast(data, meta.dtype))
                    }
                    _ => value.clone(),
                })
                .collect();
            let Some(others) = run(&mut engine, &wide, &wide_values) else { continue };
            if let Some(text) = found(&mut engine, &trace, &values, &others) {
                wrong.push(format!("{} {:?}: {text}", operation.name, sample.attributes));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn another_number_is_a_difference() {
    let mut engine = NativeEngine::new(1);
    let mut missed = Vec::new();
    for operation in ALL {
        if ESTIMATED.contains(&operation.name) || operation.name.starts_with("_linalg") {
            continue;
        }
        // Estimates for 16-bit operands are coarse.
        let is_short = |operand: &SampleOperand| {
            let SampleOperand::Tensor { meta, .. } = operand else { return false };
            matches!(meta.dtype, DType::F16 | DType::BF16)
        };
        for sample in (operation.samples)() {
            if sample.operands.iter().any(is_short) {
                continue;
            }
            let Some((trace, values)) = trace_of(operation, &sample) else { continue };
            let Some(expected) = run(&mut engine, &trace, &values) else { continue };
            let tensors = given(&mut engine, &values);
            let allowed = allowed(&mut engine, &trace, &trace.last_uses(), &tensors).unwrap();
            for (place, (data, allowed)) in expected.iter().zip(&allowed).enumerate() {
                let is_known = matches!(data.dtype, DType::F32 | DType::F64 | DType::I64);
                let count = data.shape.numel();
                let chooses = place > 0 && operation.name == "max_pool";
                if count == 0 || !is_known || chooses {
                    continue;
                }
                let last = data.element(count - 1).as_f64();
                let mut bytes = data.bytes.to_vec();
                let size = data.dtype.size();
                bytes.truncate((count - 1) * size);
                let other = Scalar::Float(last + 1.0 + last.abs() * 0.25);
                TensorData::encode(data.dtype, other, &mut bytes);
                let other = TensorData::new(data.dtype, data.shape, bytes.into()).unwrap();
                if last.is_finite() && difference(&other, data, Some(allowed)).is_none() {
                    let found = allowed.bounds.as_ref().map(|bounds| bounds.element(count - 1));
                    missed.push(format!("{} {:?}: {last}, {found:?}", operation.name, sample));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
