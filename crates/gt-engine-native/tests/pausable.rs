//! Calls that are paused again and again have the bits of calls that are not, for every operation.

use std::sync::Arc;
use std::time::Duration;

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::instruction::Operands;
use gt_ir::operation::SampleOperand;
use gt_ir::ops::custom::CUSTOM;
use gt_ir::ops::{self, matmul};
use gt_ir::{Attribute, Attributes, DType, Meta, Operand, Operation, Shape, TensorData};
use gt_worker::engine::pausable::{EngineCall, PausableOperation};
use gt_worker::{Engine, EngineError};

use crate::calls::{Call, create, enlarged, metas};

const LONG: Duration = Duration::from_secs(60);

/// The results of an operation, or its error.
type Results = Result<Vec<TensorData>, EngineError>;

fn read(engine: &mut NativeEngine, made: Result<Vec<Tensor>, EngineError>) -> Results {
    made?.iter().map(|tensor| engine.read(tensor)).collect()
}

/// Runs a call, pausing it every `slice`; while it is paused, another operation runs.
fn paused(
    engine: &mut NativeEngine,
    operation: &'static Operation,
    (operands, attributes): (Operands<Tensor>, Attributes),
    outputs: &[Meta],
    slice: Duration,
) -> (Results, usize) {
    let outputs = outputs.iter().copied().collect();
    let call = PausableOperation { operation, operands, attributes, outputs };
    let Ok(mut call) = engine.begin(EngineCall::Operation(Box::new(call))) else {
        panic!("no call is in progress")
    };
    let mut pauses = 0;
    while !call.wait(if pauses == 0 { Duration::ZERO } else { slice }) {
        assert!(call.pause(LONG), "{} has a cut point", operation.name);
        pauses += 1;
        let ones = create(engine, &f32s(&[70_000]), false);
        let meta = Meta::new(DType::F32, Shape::new(&[70_000]).unwrap());
        let given: Operands<Tensor> = [ones].into_iter().collect();
        engine.run(&ops::unary::EXP, given, &Attributes::new(), meta).unwrap();
        call.resume();
    }
    let made = call.finish().outputs;
    (read(engine, made), pauses)
}

fn f32s(dims: &[usize]) -> SampleOperand {
    let meta = Meta::new(DType::F32, Shape::new(dims).unwrap());
    SampleOperand::Tensor { meta, low: -1.0, high: 1.0 }
}

/// Compares a call that is paused with one that is not; returns how often it was paused.
fn compare(threads: usize, operation: &'static Operation, call: &Call) -> usize {
    let mut engine = NativeEngine::new(threads);
    let Ok(outputs) = operation.results(&metas(call), &call.1) else { return 0 };
    let given = call.0.iter().map(|operand| create(&mut engine, operand, false)).collect();
    compare_given(&mut engine, operation, (given, call.1.clone()), &outputs)
}

fn compare_given(
    engine: &mut NativeEngine,
    operation: &'static Operation,
    (given, attributes): (Operands<Tensor>, Attributes),
    outputs: &[Meta],
) -> usize {
    let made = match operation.further {
        Some(_) => engine.run_several(operation, given.clone(), &attributes, outputs),
        None => {
            engine.run(operation, given.clone(), &attributes, outputs[0]).map(|made| vec![made])
        }
    };
    let expected = read(engine, made);
    let slice = Duration::from_micros(200);
    let (results, pauses) = paused(engine, operation, (given, attributes), outputs, slice);
    assert!(results == expected, "{} to {outputs:?}", operation.name);
    pauses
}

/// A matrix whose rows are contiguous, or whose columns are.
fn matrix(
    engine: &mut NativeEngine,
    [rows, columns]: [usize; 2],
    by_columns: bool,
) -> Operand<Tensor> {
    if !by_columns {
        return create(engine, &f32s(&[rows, columns]), false);
    }
    let given = [create(engine, &f32s(&[columns, rows]), false)].into_iter().collect();
    let order = [Attribute::ints(&[1, 0])].into_iter().collect();
    let meta = Meta::new(DType::F32, Shape::new(&[rows, columns]).unwrap());
    Operand::Tensor(engine.run(&ops::shape::PERMUTE, given, &order, meta).unwrap())
}

#[test]
fn products_of_transposed_matrices_are_cut_without_changing_a_bit() {
    for (rows, depth, columns) in
        [(700, 600, 650), (100, 3000, 1100), (2100, 2000, 70), (64, 9000, 400)]
    {
        for (left, right) in [(false, true), (true, false), (true, true)] {
            let mut engine = NativeEngine::new(1);
            let given = [
                matrix(&mut engine, [rows, depth], left),
                matrix(&mut engine, [depth, columns], right),
            ];
            let given = given.into_iter().collect();
            let output = Meta::new(DType::F32, Shape::new(&[rows, columns]).unwrap());
            compare_given(&mut engine, &matmul::MATMUL, (given, Attributes::new()), &[output]);
        }
    }
}

#[test]
fn products_whose_last_tile_is_small_have_the_same_bits() {
    for threads in [1, 3] {
        for (rows, depth, columns) in [(1100, 1000, 300), (300, 1000, 1100), (3228, 3983, 293)] {
            let mut engine = NativeEngine::new(threads);
            let given = [
                matrix(&mut engine, [rows, depth], false),
                matrix(&mut engine, [depth, columns], false),
            ];
            let given = given.into_iter().collect();
            let output = Meta::new(DType::F32, Shape::new(&[rows, columns]).unwrap());
            compare_given(&mut engine, &matmul::MATMUL, (given, Attributes::new()), &[output]);
        }
    }
}

#[test]
fn every_operation_has_the_same_bits_when_it_is_paused() {
    let engine = NativeEngine::new(1);
    let all = ops::ALL.iter().copied().filter(|operation| **operation != CUSTOM);
    let mut pauses = 0;
    for operation in all.filter(|operation| engine.lowers(operation)) {
        for sample in (operation.samples)().into_iter().take(1) {
            let call = (sample.operands.to_vec(), sample.attributes.clone());
            pauses += compare(1, operation, &call);
            let is_small = |call: &&Call| {
                metas(call).iter().filter_map(Operand::tensor).map(Meta::bytes).sum::<usize>()
                    < 16 << 20
            };
            let larger = enlarged(&call);
            for call in larger.iter().filter(is_small).take(1) {
                pauses += compare(1, operation, call);
            }
        }
    }
    assert!(pauses > 0, "nothing was paused");
}

#[test]
fn products_are_cut_without_changing_a_bit() {
    let product =
        |left: &[usize], right: &[usize]| (vec![f32s(left), f32s(right)], Attributes::new());
    for threads in [1, 3] {
        for (left, right) in [
            (vec![700, 600], vec![600, 650]),
            (vec![513, 1100], vec![1100, 529]),
            (vec![40_000, 64], vec![64, 65]),
            (vec![3, 20_000], vec![20_000, 3000]),
            (vec![300, 30], vec![30, 60_000]),
            (vec![1, 4000], vec![4000, 4000]),
            (vec![66, 9000], vec![9000, 300]),
            (vec![64, 12_000], vec![12_000, 400]),
            (vec![65, 12_000], vec![12_000, 144]),
            (vec![2100, 2000], vec![2000, 70]),
            (vec![2100, 8000], vec![8000, 66]),
            (vec![2, 700, 700], vec![700, 700]),
            (vec![3, 700, 700], vec![3, 700, 700]),
        ] {
            compare(threads, &matmul::MATMUL, &product(&left, &right));
        }
    }
}

#[test]
fn the_end_of_a_call_is_reported() {
    let mut engine = NativeEngine::new(1);
    let (sender, receiver) = std::sync::mpsc::channel();
    engine.notify_by(Arc::new(move || sender.send(()).unwrap()));
    let given = [matrix(&mut engine, [300, 300], false), matrix(&mut engine, [300, 300], true)];
    let operands = given.into_iter().collect();
    let outputs = [Meta::new(DType::F32, Shape::new(&[300, 300]).unwrap())].into_iter().collect();
    let attributes = Attributes::new();
    let call = PausableOperation { operation: &matmul::MATMUL, operands, attributes, outputs };
    let Ok(mut call) = engine.begin(EngineCall::Operation(Box::new(call))) else {
        panic!("no call is in progress")
    };
    receiver.recv_timeout(LONG).expect("the end is reported");
    assert!(call.wait(Duration::ZERO), "it is complete then");
    assert!(call.finish().outputs.is_ok());
}
