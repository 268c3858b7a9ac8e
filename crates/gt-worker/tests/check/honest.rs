//! Traces computed with more precision than their dtypes have, and by fused programs: no alarm.

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::trace::{Input, Trace};
use gt_ir::{DType, Meta, Scalar, TensorData};
use gt_worker::Engine;
use gt_worker::check::{allowed, difference};
use gt_worker::engine::launch_plainly;
use gt_worker::plan::{InputValue, Plan};
use gt_worker::simplify::simplify;

use crate::check::random::{Dice, random_trace};

/// The dtype that a value is widened to.
fn wider(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 | DType::F32 => DType::F64,
        DType::C64 => DType::C128,
        other => other,
    }
}

/// Values in another dtype.
pub fn cast(data: &TensorData, dtype: DType) -> TensorData {
    let mut bytes = Vec::new();
    for index in 0..data.shape.numel() {
        match data.complex(index) {
            (real, imaginary) if dtype.is_complex() => {
                TensorData::encode_complex(dtype, real, imaginary, &mut bytes);
            }
            _ => TensorData::encode(dtype, data.element(index), &mut bytes),
        }
    }
    TensorData::new(dtype, data.shape, bytes.into()).unwrap()
}

/// The same trace on float64, as code that never rounds in between.
pub fn widened(trace: &Trace) -> Option<Trace> {
    let inputs = trace.inputs.iter().map(|input| match *input {
        Input::Tensor(meta) => Input::Tensor(Meta::new(wider(meta.dtype), meta.shape)),
        number => number,
    });
    let mut wide = Trace::new(inputs.collect());
    for step in trace.steps.iter().filter(|step| !step.is_further()) {
        let lowers = |_| true;
        let mut attributes = step.attributes.clone();
        for attribute in &mut attributes {
            if let gt_ir::Attribute::DType(dtype) = attribute {
                *dtype = wider(*dtype);
            }
        }
        let (operands, varying) = (step.operands.clone(), step.varying.clone());
        wide.push(&lowers, step.operation, operands, attributes, varying).ok()?;
    }
    wide.outputs.clone_from(&trace.outputs);
    (wide.steps.len() == trace.steps.len()).then_some(wide)
}

pub fn given(
    engine: &mut NativeEngine,
    inputs: &[InputValue<TensorData>],
) -> Vec<InputValue<Tensor>> {
    let make = |input: &InputValue<TensorData>| match input {
        InputValue::Tensor(data) => InputValue::Tensor(engine.create(data.clone()).unwrap()),
        InputValue::Number(number) => InputValue::Number(*number),
        InputValue::Taken => InputValue::Taken,
    };
    inputs.iter().map(make).collect()
}

pub fn run(
    engine: &mut NativeEngine,
    trace: &Trace,
    inputs: &[InputValue<TensorData>],
) -> Option<Vec<TensorData>> {
    let inputs = given(engine, inputs);
    let made = launch_plainly(engine, trace, &trace.last_uses(), &inputs).ok()?;
    Some(made.iter().map(|tensor| engine.read(tensor).unwrap()).collect())
}

/// Random values of a trace's inputs, from -2 to 2.
pub fn values(trace: &Trace, dice: &mut Dice) -> Vec<InputValue<TensorData>> {
    let value = |input: &Input| match input {
        Input::Tensor(meta) => {
            let mut bytes = Vec::new();
            for _ in 0..meta.shape.numel() {
                let value = dice.fraction() * 4.0 - 2.0;
                let value = if meta.dtype.is_float() { value } else { value.round() };
                TensorData::encode(meta.dtype, Scalar::Float(value), &mut bytes);
            }
            InputValue::Tensor(TensorData::new(meta.dtype, meta.shape, bytes.into()).unwrap())
        }
        Input::Number(number) => InputValue::Number(*number),
    };
    trace.inputs.iter().map(value).collect()
}

/// Compares what other code gave with a trace's operations.
pub fn found(
    engine: &mut NativeEngine,
    trace: &Trace,
    inputs: &[InputValue<TensorData>],
    others: &[TensorData],
) -> Option<String> {
    let expected = run(engine, trace, inputs)?;
    let tensors = given(engine, inputs);
    let allowed = allowed(engine, trace, &trace.last_uses(), &tensors).unwrap();
    let both = others.iter().zip(&expected).zip(&allowed);
    both.enumerate().find_map(|(output, ((other, expected), allowed))| {
        let other = cast(other, expected.dtype);
        Some(format!("output {output}: {}", difference(&other, expected, Some(allowed))?))
    })
}

#[test]
fn more_precision_is_no_difference() {
    let mut engine = NativeEngine::new(1);
    let mut compared = 0;
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let trace = random_trace(&mut dice);
        let Some(wide) = widened(&trace) else { continue };
        let inputs = values(&trace, &mut dice);
        let wide_inputs: Vec<_> = (inputs.iter())
            .map(|input| match input {
                InputValue::Tensor(data) => InputValue::Tensor(cast(data, wider(data.dtype))),
                other => other.clone(),
            })
            .collect();
        let Some(others) = run(&mut engine, &wide, &wide_inputs) else { continue };
        if let Some(text) = found(&mut engine, &trace, &inputs, &others) {
            panic!("seed {seed}: {text}\n{trace}");
        }
        compared += 1;
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn fused_programs_are_no_difference() {
    let mut engine = NativeEngine::new(1);
    for seed in 1000..1300 {
        let mut dice = Dice::new(seed);
        let trace = random_trace(&mut dice);
        let inputs = values(&trace, &mut dice);
        let mut program = engine.prepare(&Plan::new(simplify(&trace))).unwrap();
        let mut tensors = given(&mut engine, &inputs);
        let Ok(made) = engine.launch(&mut program, &mut tensors) else { continue };
        let others: Vec<_> = made.iter().map(|tensor| engine.read(tensor).unwrap()).collect();
        if let Some(text) = found(&mut engine, &trace, &inputs, &others) {
            panic!("seed {seed}: {text}\n{trace}");
        }
    }
}
