//! Broken compiled code: each kind is found in the first runs.

use gt_engine_native::NativeEngine;
use gt_ir::instruction::Attribute;
use gt_ir::ops::{binary, matmul, reduce, shape, slice, unary};
use gt_ir::trace::{Input, Trace};
use gt_ir::{Attributes, DType, Meta, Operand, Operation, Scalar, Shape, TensorData};
use gt_worker::Engine;
use gt_worker::mismatch::Wrong;
use gt_worker::plan::{InputValue, Plan};
use gt_worker::verify::{CheckOutcome, Checks, launch};
use smallvec::{SmallVec, smallvec};

use crate::check::engine::{Cell, Fault, Faulty, changed};
use crate::check::honest::values;
use crate::check::random::Dice;

/// Lengths around those of vectors.
const LENGTHS: [usize; 5] = [1, 7, 15, 17, 33];

/// A trace on inputs of these shapes, whose output is its last value.
struct TemplateBuilder(Trace);

impl TemplateBuilder {
    fn new(inputs: &[(DType, &[usize])]) -> TemplateBuilder {
        let tensor = |&(dtype, dims): &(DType, &[usize])| {
            Input::Tensor(Meta::new(dtype, Shape::new(dims).unwrap()))
        };
        TemplateBuilder(Trace::new(inputs.iter().map(tensor).collect()))
    }

    fn step(
        mut self,
        operation: &'static Operation,
        operands: &[u32],
        attributes: Attributes,
    ) -> Self {
        let operands: SmallVec<_> = operands.iter().map(|&value| Operand::Tensor(value)).collect();
        self.0.push(&|_| true, operation, operands, attributes, smallvec![]).unwrap();
        self.0.outputs = vec![self.0.values() as u32 - 1];
        self
    }

    fn times(mut self, value: u32, factor: f64) -> Self {
        let operands = smallvec![Operand::Tensor(value), Operand::Scalar(Scalar::Float(factor))];
        self.0.push(&|_| true, &binary::MUL, operands, smallvec![], smallvec![]).unwrap();
        self.0.outputs = vec![self.0.values() as u32 - 1];
        self
    }
}

fn f32s(dims: &[usize]) -> (DType, &[usize]) {
    (DType::F32, dims)
}

fn over(axis: i64) -> Attributes {
    smallvec![Attribute::ints(&[axis]), Attribute::Bool(false)]
}

/// What the comparisons of up to four runs on these inputs find.
fn found_on(
    trace: &Trace,
    other: Option<Trace>,
    fault: Fault,
    rounds: &[Vec<InputValue<TensorData>>],
) -> Option<(usize, Wrong)> {
    let native = NativeEngine::new(1);
    let mut engine = Faulty { native, other, fault, before: Vec::new() };
    let (mut program, mut checks) = (trace.clone(), Checks::default());
    let plan = Plan::new(trace.clone());
    for (round, inputs) in rounds.iter().enumerate() {
        let create = |engine: &mut Faulty, input: &InputValue<TensorData>| match input {
            InputValue::Tensor(data) => InputValue::Tensor(engine.create(data.clone()).unwrap()),
            InputValue::Number(number) => InputValue::Number(*number),
            InputValue::Taken => InputValue::Taken,
        };
        let mut tensors: Vec<InputValue<Cell>> =
            inputs.iter().map(|input| create(&mut engine, input)).collect();
        let last_uses = trace.last_uses();
        let checked =
            launch(&mut engine, &plan, &last_uses, &mut program, &mut checks, &mut tensors)
                .unwrap();
        match checked.verdict {
            CheckOutcome::Open => {}
            CheckOutcome::Right => return None,
            CheckOutcome::Wrong(mismatch) => {
                assert!(checked.outputs.is_none());
                assert_eq!(mismatch.inputs.len(), inputs.len());
                return Some((round, mismatch.wrong));
            }
            CheckOutcome::Unknown(why) => panic!("{why}"),
        }
    }
    panic!("never judged");
}

fn found(trace: &Trace, other: Option<Trace>, fault: Fault) -> Option<(usize, Wrong)> {
    let mut dice = Dice::new(5);
    let rounds: Vec<_> = (0..4).map(|_| values(trace, &mut dice)).collect();
    found_on(trace, other, fault, &rounds)
}

fn honest() -> Fault {
    Box::new(|_, _, right, _| right.to_vec())
}

/// A fault that changes the bytes of each output.
fn bytes(change: impl Fn(&mut Vec<u8>) + Send + 'static) -> Fault {
    Box::new(move |engine, _, right, _| {
        right.iter().map(|of| changed(engine, of, |bytes| change(bytes))).collect()
    })
}

fn f32_at(bytes: &mut [u8], index: usize, change: impl Fn(f32) -> f32) {
    let place = index * 4..index * 4 + 4;
    let value = f32::from_le_bytes(bytes[place.clone()].try_into().unwrap());
    bytes[place].copy_from_slice(&change(value).to_le_bytes());
}

/// exp(x) * 2 + y
fn elementwise(length: usize) -> Trace {
    TemplateBuilder::new(&[f32s(&[length]), f32s(&[length])])
        .step(&unary::EXP, &[0], smallvec![])
        .times(2, 2.0)
        .step(&binary::ADD, &[3, 1], smallvec![])
        .0
}

#[track_caller]
fn plans_differ(right: TemplateBuilder, wrong: TemplateBuilder) {
    assert!(found(&right.0, None, honest()).is_none());
    assert!(found(&right.0, Some(wrong.0), honest()).is_some());
}

#[test]
fn the_last_element_of_a_vector() {
    for length in LENGTHS {
        let trace = elementwise(length);
        assert!(found(&trace, None, honest()).is_none());
        let tail = bytes(|bytes| {
            let last = bytes.len() / 4 - 1;
            f32_at(bytes, last, |x| x * 1.0001);
        });
        let Some((0, Wrong::Output(0, difference))) = found(&trace, None, tail) else {
            panic!("{length}");
        };
        assert_eq!((difference.index, difference.count), (vec![length - 1], 1));
    }
}

#[test]
fn an_offset_that_is_not_aligned() {
    for length in [15, 17, 33] {
        let shifted = bytes(|bytes| {
            for index in (8..bytes.len() / 4).step_by(8) {
                let (from, to) = ((index - 1) * 4, index * 4);
                bytes.copy_within(from..from + 4, to);
            }
        });
        assert!(found(&elementwise(length), None, shifted).is_some());
    }
}

#[test]
fn an_input_that_is_written_to() {
    let fault: Fault = Box::new(|_, inputs, right, _| {
        if let InputValue::Tensor(input) = &inputs[0] {
            let made = right[0].lock().unwrap().clone();
            *input.lock().unwrap() = made;
        }
        right.to_vec()
    });
    let wrong = found(&elementwise(17), None, fault);
    assert!(matches!(wrong, Some((0, Wrong::Input(0)))));
}

#[test]
fn the_values_of_the_run_before() {
    let stale: Fault = Box::new(
        |_, _, right, before| {
            if before.is_empty() { right.to_vec() } else { before.to_vec() }
        },
    );
    assert!(matches!(found(&elementwise(17), None, stale), Some((1, Wrong::Output(..)))));
    let reused: Fault = Box::new(|_, _, right, before| {
        for (old, new) in before.iter().zip(right) {
            let made = new.lock().unwrap().clone();
            *old.lock().unwrap() = made;
        }
        if before.is_empty() { right.to_vec() } else { before.to_vec() }
    });
    assert!(matches!(found(&elementwise(17), None, reused), Some((1, Wrong::Earlier(0)))));
}

#[test]
fn uniform_runs_prove_nothing() {
    let trace = elementwise(17);
    let mut dice = Dice::new(5);
    let ones = |_: &InputValue<TensorData>| {
        let bytes: Vec<u8> = [1f32; 17].iter().flat_map(|x| x.to_le_bytes()).collect();
        let shape = Shape::new(&[17]).unwrap();
        InputValue::Tensor(TensorData::new(DType::F32, shape, bytes.into()).unwrap())
    };
    let varied = values(&trace, &mut dice);
    let uniform: Vec<_> = varied.iter().map(ones).collect();
    let rounds = [uniform.clone(), uniform, varied];
    let turned = bytes(|bytes| {
        let values: Vec<u8> = bytes.chunks(4).rev().flatten().copied().collect();
        *bytes = values;
    });
    assert!(matches!(found_on(&trace, None, turned, &rounds), Some((2, Wrong::Output(..)))));
}

#[test]
fn the_wrong_axis_of_a_sum() {
    let sum = |axis| TemplateBuilder::new(&[f32s(&[7, 7])]).step(&reduce::SUM, &[0], over(axis));
    plans_differ(sum(0), sum(1));
}

#[test]
fn a_transposed_product() {
    let turn = || smallvec![Attribute::ints(&[1i64, 0])];
    let right = TemplateBuilder::new(&[f32s(&[15, 15]), f32s(&[15, 15])])
        .step(&shape::PERMUTE, &[0], turn())
        .step(&matmul::MATMUL, &[0, 1], smallvec![]);
    let wrong = TemplateBuilder::new(&[f32s(&[15, 15]), f32s(&[15, 15])])
        .step(&shape::PERMUTE, &[0], turn())
        .step(&matmul::MATMUL, &[2, 1], smallvec![]);
    plans_differ(right, wrong);
}

fn part(starts: &[i64], sizes: &[i64]) -> Attributes {
    let steps = vec![1i64; starts.len()];
    smallvec![Attribute::ints(starts), Attribute::ints(sizes), Attribute::ints(&steps)]
}

#[test]
fn the_last_term_of_a_product() {
    for k in [7, 15, 17, 33, 257] {
        for dtype in [DType::F32, DType::BF16] {
            let inputs: [(DType, &[usize]); 2] = [(dtype, &[5, k]), (dtype, &[k, 3])];
            let right = TemplateBuilder::new(&inputs).step(&matmul::MATMUL, &[0, 1], smallvec![]);
            let less = k as i64 - 1;
            let wrong = TemplateBuilder::new(&inputs)
                .step(&slice::SLICE, &[0], part(&[0, 0], &[5, less]))
                .step(&slice::SLICE, &[1], part(&[0, 0], &[less, 3]))
                .step(&matmul::MATMUL, &[2, 3], smallvec![]);
            plans_differ(right, wrong);
        }
    }
}

#[test]
fn a_slice_one_further() {
    let at = |start| {
        TemplateBuilder::new(&[f32s(&[33])]).step(&slice::SLICE, &[0], part(&[start], &[17]))
    };
    plans_differ(at(3), at(4));
}

#[test]
fn operands_the_other_way_around() {
    let of = |operands: &[u32]| {
        TemplateBuilder::new(&[f32s(&[17]), f32s(&[17])]).step(&binary::SUB, operands, smallvec![])
    };
    plans_differ(of(&[0, 1]), of(&[1, 0]));
}

#[test]
fn a_row_broadcast_as_a_column() {
    let inputs = [f32s(&[7, 7]), f32s(&[1, 7])];
    let right = TemplateBuilder::new(&inputs).step(&binary::ADD, &[0, 1], smallvec![]);
    let wrong = TemplateBuilder::new(&inputs)
        .step(&shape::PERMUTE, &[1], smallvec![Attribute::ints(&[1i64, 0])])
        .step(&binary::ADD, &[0, 2], smallvec![]);
    plans_differ(right, wrong);
}

fn tensor(dtype: DType, numbers: &[f64]) -> InputValue<TensorData> {
    let mut bytes = Vec::new();
    numbers.iter().for_each(|&x| TensorData::encode(dtype, Scalar::Float(x), &mut bytes));
    let shape = Shape::new(&[numbers.len()]).unwrap();
    InputValue::Tensor(TensorData::new(dtype, shape, bytes.into()).unwrap())
}

#[test]
fn integers_that_saturate() {
    let trace =
        TemplateBuilder::new(&[(DType::I32, &[3])]).step(&binary::MUL, &[0, 0], smallvec![]).0;
    let rounds = vec![vec![tensor(DType::I32, &[3.0, 70000.0, -5.0])]; 4];
    let saturated = bytes(|bytes| bytes[4..8].copy_from_slice(&i32::MAX.to_le_bytes()));
    assert!(found_on(&trace, None, saturated, &rounds).is_some());
    assert!(found_on(&trace, None, honest(), &rounds).is_none());
}

#[test]
fn nan_and_infinity() {
    let largest =
        TemplateBuilder::new(&[f32s(&[3])]).times(0, 1.1).step(&reduce::AMAX, &[1], over(0)).0;
    let rounds = vec![vec![tensor(DType::F32, &[1.0, f64::NAN, 2.0])]; 4];
    let dropped = bytes(|bytes| f32_at(bytes, 0, |_| 2.2));
    assert!(found_on(&largest, None, dropped, &rounds).is_some());
    let exp =
        TemplateBuilder::new(&[f32s(&[3])]).times(0, 1.1).step(&unary::EXP, &[1], smallvec![]).0;
    let rounds = vec![vec![tensor(DType::F32, &[1.0, 90.0, 70.0])]; 4];
    let finite = bytes(|bytes| f32_at(bytes, 1, |_| f32::MAX));
    let infinite = bytes(|bytes| f32_at(bytes, 2, |_| f32::INFINITY));
    for fault in [finite, infinite] {
        assert!(found_on(&exp, None, fault, &rounds).is_some());
    }
    assert!(found_on(&exp, None, honest(), &rounds).is_none());
}

#[test]
fn the_sign_of_a_zero_may_be_another() {
    let trace = TemplateBuilder::new(&[f32s(&[3])]).step(&unary::RELU, &[0], smallvec![]).0;
    let rounds = vec![vec![tensor(DType::F32, &[1.0, 0.0, -2.0])]; 4];
    let negative = bytes(|bytes| f32_at(bytes, 1, |x| -x));
    assert!(found_on(&trace, None, negative, &rounds).is_none());
}

#[test]
fn one_integer_in_a_million() {
    let trace =
        TemplateBuilder::new(&[(DType::I32, &[1_000_003])]).step(&unary::NEG, &[0], smallvec![]).0;
    let one = bytes(|bytes| bytes[4 * 777_777] ^= 1);
    let Some((_, Wrong::Output(_, difference))) = found(&trace, None, one) else { panic!() };
    assert_eq!((difference.index, difference.count), (vec![777_777], 1));
}

#[test]
fn float32_computed_as_bfloat16() {
    let mut trace = TemplateBuilder::new(&[f32s(&[33])]);
    for step in 0..40 {
        trace = trace.times(step, 1.01);
    }
    let rounded = bytes(|bytes| {
        bytes.chunks_mut(4).for_each(|element| element[..2].fill(0));
    });
    assert!(found(&trace.0, None, honest()).is_none());
    assert!(found(&trace.0, None, rounded).is_some());
}

#[test]
fn an_index_that_is_off_by_one() {
    let argmax = || smallvec![Attribute::ints(&[1i64]), Attribute::Bool(false)];
    let trace = TemplateBuilder::new(&[f32s(&[5, 33])])
        .times(0, 1.1)
        .step(&reduce::ARGMAX, &[1], argmax())
        .0;
    let beside = bytes(|bytes| bytes[0] ^= 1);
    assert!(found(&trace, None, honest()).is_none());
    assert!(found(&trace, None, beside).is_some());
}
