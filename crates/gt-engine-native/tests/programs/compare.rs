//! Compares a trace executed as a program with the same trace executed operation by operation.

use gt_engine_native::NativeEngine;
use gt_ir::trace::{Input, Trace};
use gt_ir::{Meta, Scalar, TensorData};
use gt_worker::Engine;
use gt_worker::engine::launch_plainly;
use gt_worker::plan::{InputValue, Plan};
use gt_worker::simplify::simplify;

use crate::programs::random::Dice;

/// Checks that a trace has the same bits when it runs step by step and as a program, twice, with
/// other numbers the second time.
pub fn compare(engine: &mut NativeEngine, trace: &Trace, dice: &mut Dice) -> Result<(), String> {
    let dies: Vec<bool> = trace.inputs.iter().map(|_| dice.below(2) == 0).collect();
    let plan = Plan { trace: simplify(trace), dies: dies.clone(), compile: false };
    let mut program = engine.prepare(&plan).unwrap();
    let last_uses = trace.last_uses();
    for round in 0..2 {
        let mut values: Vec<TensorData> = Vec::new();
        let given = |engine: &mut NativeEngine, dice: &mut Dice, values: &mut Vec<TensorData>| {
            let inputs = trace.inputs.iter().map(|input| match input {
                Input::Tensor(meta) => {
                    let values_of = data(*meta, dice);
                    values.push(values_of.clone());
                    InputValue::Tensor(engine.create(values_of).unwrap())
                }
                Input::Number(Scalar::Float(x)) => {
                    InputValue::Number(Scalar::Float(x + f64::from(round)))
                }
                Input::Number(other) => InputValue::Number(*other),
            });
            inputs.collect::<Vec<_>>()
        };
        let start = dice.thrown;
        let inputs = given(engine, dice, &mut values);
        dice.thrown = start;
        let plain = launch_plainly(engine, trace, &last_uses, &inputs);
        let kept: Vec<InputValue<_>> = inputs.clone();
        drop(inputs);
        let mut again = given(engine, dice, &mut Vec::new());
        let fused = engine.launch(&mut program, &mut again);
        match (plain, fused) {
            (Ok(plain), Ok(fused)) => {
                for (number, (a, b)) in fused.iter().zip(&plain).enumerate() {
                    let (a, b) = (engine.read(a).unwrap(), engine.read(b).unwrap());
                    same(&a, &b).map_err(|text| format!("output {number}: {text}"))?;
                }
                // Inputs that do not die are unchanged.
                for ((&dies, given), kept) in dies.iter().zip(&again).zip(&kept) {
                    if !dies
                        && let InputValue::Tensor(given) = given
                        && let InputValue::Tensor(kept) = kept
                    {
                        let (a, b) = (engine.read(given).unwrap(), engine.read(kept).unwrap());
                        same(&a, &b).map_err(|text| format!("an input changed: {text}"))?;
                    }
                }
            }
            (Err(a), Err(b)) => {
                assert_eq!(a, b);
                assert!(!again.iter().any(|given| matches!(given, InputValue::Taken)));
            }
            // A program does not compute unused values, so they cannot fail.
            (Err(_), Ok(_)) => {}
            (Ok(_), Err(error)) => return Err(format!("only the program fails: {error}")),
        }
    }
    Ok(())
}

/// Creates a tensor of random values from -2 to 2; integers for the exact dtypes.
pub fn data(meta: Meta, dice: &mut Dice) -> TensorData {
    let mut bytes = Vec::new();
    for _ in 0..meta.shape.numel() {
        let value = dice.fraction() * 4.0 - 2.0;
        let value = if meta.dtype.is_float() { value } else { value.round() };
        TensorData::encode(meta.dtype, Scalar::Float(value), &mut bytes);
    }
    TensorData::new(meta.dtype, meta.shape, bytes.into()).unwrap()
}

/// Returns an error unless two tensors are equal to the last bit; NaNs may differ in sign and
/// payload.
pub fn same(a: &TensorData, b: &TensorData) -> Result<(), String> {
    assert_eq!((a.dtype, a.shape), (b.dtype, b.shape));
    let size = a.dtype.size();
    let pairs = a.bytes.chunks(size).zip(b.bytes.chunks(size));
    for (index, _) in pairs.enumerate().filter(|(_, (a, b))| a != b) {
        let (x, y) = (a.element(index).as_f64(), b.element(index).as_f64());
        if !(x.is_nan() && y.is_nan()) {
            let (dtype, shape) = (a.dtype, a.shape);
            return Err(format!("element {index} of {dtype} {shape}: {x:e} instead of {y:e}"));
        }
    }
    Ok(())
}
