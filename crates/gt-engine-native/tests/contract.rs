//! Violations of the worker's contract with the engine: the result is a panic or an error, and the
//! engine accesses no memory but that of its tensors.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::instruction::Operands;
use gt_ir::ops::{
    binary as b, index as i, matmul as m, nn, reduce as r, shape as s, slice, ternary as t,
};
use gt_ir::ops::{compare as c, unary as u};
use gt_ir::trace::{Input, Trace};
use gt_ir::{Attribute, DType, Meta, Operand, Operation, Scalar, Shape, TensorData};
use gt_worker::Engine;
use gt_worker::plan::{InputValue, Plan};
use smallvec::smallvec;

fn meta(dtype: DType, dims: &[usize]) -> Meta {
    Meta::new(dtype, Shape::new(dims).unwrap())
}

fn floats(dims: &[usize]) -> Meta {
    meta(DType::F32, dims)
}

fn tensor(engine: &mut NativeEngine, meta: Meta) -> Tensor {
    let mut bytes = Vec::new();
    for _ in 0..meta.shape.numel() {
        TensorData::encode(meta.dtype, Scalar::Int(1), &mut bytes);
    }
    let data = TensorData::new(meta.dtype, meta.shape, bytes.into()).unwrap();
    engine.create(data).unwrap()
}

/// Checks that the engine refuses an operation on these tensors with this output, which does not
/// match.
#[track_caller]
fn refused(operation: &'static Operation, of: &[Meta], attributes: &[Attribute], output: Meta) {
    for threads in [1, 2] {
        let mut engine = NativeEngine::new(threads);
        let operands: Operands<Tensor> =
            of.iter().map(|meta| Operand::Tensor(tensor(&mut engine, *meta))).collect();
        let attributes = attributes.iter().cloned().collect();
        let run = || engine.run(operation, operands, &attributes, output).is_err();
        assert!(catch_unwind(AssertUnwindSafe(run)).unwrap_or(true), "{operation:?}");
    }
}

#[test]
fn operations_whose_output_does_not_fit_are_refused() {
    let number = |numbers: &[i64]| Attribute::ints(numbers);
    let reduced = [number(&[1]), Attribute::Bool(false)];
    let large = floats(&[1000, 1000]);
    refused(&b::ADD, &[floats(&[4]), floats(&[3])], &[], floats(&[4]));
    refused(&b::ADD, &[floats(&[4]), floats(&[4])], &[], floats(&[1000]));
    refused(&b::ADD, &[floats(&[4]), floats(&[4])], &[], large);
    refused(&b::ADD, &[floats(&[4])], &[], floats(&[4]));
    refused(&b::ADD, &[floats(&[4]); 3], &[], floats(&[4]));
    refused(&c::LT, &[floats(&[2, 4]), floats(&[4])], &[], meta(DType::Bool, &[4]));
    refused(&u::EXP, &[floats(&[0])], &[], floats(&[3]));
    refused(&u::EXP, &[], &[], floats(&[3]));
    refused(&t::WHERE, &[meta(DType::Bool, &[9]), floats(&[4]), floats(&[4])], &[], floats(&[4]));
    refused(&r::SUM, &[floats(&[4, 5])], &reduced, floats(&[5]));
    refused(&r::SUM, &[floats(&[1000, 1000])], &reduced, floats(&[2000]));
    refused(&r::ARGMAX, &[floats(&[4, 5])], &reduced, meta(DType::I64, &[5]));
    refused(
        &gt_ir::ops::cumulative::CUMSUM,
        &[floats(&[4, 5])],
        &[Attribute::Int(1)],
        floats(&[4, 6]),
    );
    refused(&m::MATMUL, &[floats(&[2, 3]), floats(&[3, 4])], &[], floats(&[9, 9]));
    refused(&m::MATMUL, &[floats(&[2, 3]), floats(&[5, 4])], &[], floats(&[2, 4]));
    refused(&m::MATMUL, &[floats(&[3, 2, 3]), floats(&[2, 3, 4])], &[], floats(&[3, 2, 4]));
    refused(&m::MATMUL, &[floats(&[3]), floats(&[3])], &[], floats(&[]));
    refused(&nn::SOFTMAX, &[floats(&[4])], &[Attribute::Int(1)], floats(&[4, 4]));
}

#[test]
fn views_beyond_their_memory_are_refused() {
    let lists = |lists: [&[i64]; 3]| lists.map(Attribute::ints);
    refused(&s::RESHAPE, &[floats(&[4])], &[Attribute::ints(&[400i64])], floats(&[400]));
    // A block of memory may be larger than requested; a view must not reach the rest of it either.
    refused(&s::RESHAPE, &[floats(&[17])], &[Attribute::ints(&[18i64])], floats(&[18]));
    refused(&s::PERMUTE, &[floats(&[2, 9])], &[Attribute::ints(&[0i64, 1])], floats(&[3, 9]));
    refused(&s::EXPAND, &[floats(&[4])], &[Attribute::ints(&[3i64, 5])], floats(&[3, 5]));
    refused(&s::FLIP, &[floats(&[4])], &[Attribute::ints(&[0i64])], floats(&[9]));
    for lists in [lists([&[14], &[4], &[1]]), lists([&[-1], &[4], &[1]]), lists([&[0], &[4], &[9]])]
    {
        refused(&slice::SLICE, &[floats(&[16])], &lists, floats(&[4]));
        refused(&slice::SLICE_ASSIGN, &[floats(&[16]), floats(&[4])], &lists, floats(&[16]));
    }
    let huge = lists([&[0, 0], &[2, 2], &[i64::MAX, i64::MAX]]);
    refused(&slice::SLICE, &[floats(&[4, 4])], &huge, floats(&[2, 2]));
    let along = [Attribute::Int(0)];
    refused(&s::CAT, &[floats(&[4]), floats(&[3])], &along, floats(&[9]));
    refused(&s::CAT, &[floats(&[4]), floats(&[3])], &along, floats(&[5]));
    refused(&s::CAT, &[floats(&[4, 2]), floats(&[3, 3])], &along, floats(&[7, 3]));
    refused(&s::TRIL, &[floats(&[4])], &along, floats(&[4]));
}

#[test]
fn indices_into_other_shapes_are_refused() {
    let along = [Attribute::Int(0)];
    let places = |dims: &[usize]| meta(DType::I64, dims);
    refused(&i::GATHER, &[floats(&[4, 2]), places(&[2, 9])], &along, floats(&[2, 9]));
    refused(&i::GATHER, &[floats(&[4, 2]), places(&[2, 2])], &along, floats(&[9, 9]));
    refused(&i::GATHER, &[floats(&[4, 2]), places(&[2])], &along, floats(&[2]));
    let source = floats(&[2, 9]);
    refused(&i::SCATTER_ADD, &[floats(&[4, 2]), places(&[2, 9]), source], &along, floats(&[4, 2]));
    refused(&i::SCATTER_ADD, &[floats(&[2]), places(&[9]), floats(&[2])], &along, floats(&[2]));
    refused(&i::INDEX_SELECT, &[floats(&[4, 2]), places(&[3])], &along, floats(&[9, 2]));
    refused(&i::INDEX_SELECT, &[floats(&[4, 2]), places(&[3])], &along, floats(&[3, 3]));
    for operation in [&i::INDEX_ADD, &i::INDEX_COPY] {
        let of = [floats(&[4, 2]), places(&[3]), floats(&[2, 2])];
        refused(operation, &of, &along, floats(&[4, 2]));
        let of = [floats(&[4, 2]), places(&[3]), floats(&[3, 2])];
        refused(operation, &of, &along, floats(&[400, 2]));
    }
}

/// The tensors of a trace are checked in every execution.
#[test]
fn programs_are_not_run_on_other_tensors_than_they_were_made_for() {
    let mut engine = NativeEngine::new(2);
    let wanted = floats(&[300, 500]);
    let input = Input::Tensor(wanted);
    let mut trace = Trace::new(vec![input; 2]);
    let mut push = |operation, operands| {
        trace.push(&|_| true, operation, operands, Default::default(), smallvec![]).unwrap()
    };
    let sum = push(&b::ADD, smallvec![Operand::Tensor(0), Operand::Tensor(1)]);
    let last = push(&u::EXP, smallvec![Operand::Tensor(sum)]);
    trace.outputs = vec![last];
    let mut program = engine.prepare(&Plan { trace, dies: vec![true; 2], compile: false }).unwrap();
    assert!(program.to_string().contains("tile by tile"));
    for other in [floats(&[300, 499]), meta(DType::U8, &[300, 500]), floats(&[2, 300, 500])] {
        let mut given = [wanted, other].map(|meta| InputValue::Tensor(tensor(&mut engine, meta)));
        let launch = || engine.launch(&mut program, &mut given).is_err();
        assert!(catch_unwind(AssertUnwindSafe(launch)).unwrap_or(true));
    }
    let mut given = [wanted; 2].map(|meta| InputValue::Tensor(tensor(&mut engine, meta)));
    let outputs = engine.launch(&mut program, &mut given).unwrap();
    assert!((engine.read(&outputs[0]).unwrap().element(9).as_f64() - 2f64.exp()).abs() < 1e-5);
}
