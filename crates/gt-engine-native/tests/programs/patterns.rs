//! Traces with patterns that the planner or the engine treats specially.

use gt_engine_native::NativeEngine;
use gt_ir::ops::{binary as b, create, matmul, reduce as r, shape as s, slice};
use gt_ir::trace::{Input, Source, Trace};
use gt_ir::{Attribute, Attributes, DType, Meta, Operand, Operation, Scalar, Shape};
use smallvec::smallvec;

use crate::programs::compare::compare;
use crate::programs::random::Dice;

/// Matrices transposed, multiplied and summed over the batch, as in the gradient of a weight.
#[test]
fn products_are_summed_over_their_batch() {
    let meta = |dims: &[usize]| Meta::new(DType::F32, Shape::new(dims).unwrap());
    for threads in [1, 2] {
        let mut engine = NativeEngine::new(threads);
        for (seed, (batch, transposes_left)) in
            [(1, false), (3, true), (5, false), (2, true)].into_iter().enumerate()
        {
            let dims: [&[usize]; 2] = if transposes_left {
                [&[batch, 40, 130], &[batch, 40, 9]]
            } else {
                [&[batch, 130, 40], &[batch, 9, 40]]
            };
            let inputs = dims.map(|dims| Input::Tensor(meta(dims)));
            let mut trace = Trace::new(inputs.to_vec());
            let lowers = |_: &'static Operation| true;
            let mut push = |operation, operands: &[u32], attributes: Attributes| {
                let operands = operands.iter().map(|&value| Operand::Tensor(value)).collect();
                trace.push(&lowers, operation, operands, attributes, smallvec![]).unwrap()
            };
            let order = || smallvec![Attribute::ints(&[0i64, 2, 1])];
            let (left, right) = if transposes_left {
                (push(&s::PERMUTE, &[0], order()), 1)
            } else {
                (0, push(&s::PERMUTE, &[1], order()))
            };
            let product = push(&matmul::MATMUL, &[left, right], smallvec![]);
            let product = if batch == 3 { push(&s::PERMUTE, &[product], order()) } else { product };
            let over = smallvec![Attribute::ints(&[0i64]), Attribute::Bool(seed % 2 == 0)];
            let sum = push(&r::SUM, &[product], over);
            trace.outputs = vec![sum];
            compare(&mut engine, &trace, &mut Dice::new(seed as u64)).unwrap();
        }
    }
}

/// Sums of rows whose axis was dropped broadcast along the rows, so that each belongs to a column.
#[test]
fn row_results_are_read_with_their_broadcast_strides() {
    for keepdims in [false, true] {
        let shape = Shape::new(&[6, 6]).unwrap();
        let input = Input::Tensor(Meta::new(DType::F32, shape));
        let mut trace = Trace::new(vec![input; 2]);
        let lowers = |_: &'static Operation| true;
        let mut push = |operation, operands: &[Source], attributes: Attributes| {
            let operands = operands.iter().copied().collect();
            trace.push(&lowers, operation, operands, attributes, smallvec![]).unwrap()
        };
        let (value, two) = (Operand::Tensor, Operand::Scalar(Scalar::Float(2.0)));
        let y = push(&b::MUL, &[value(0), two], smallvec![]);
        let over = smallvec![Attribute::ints(&[1i64]), Attribute::Bool(keepdims)];
        let sums = push(&r::SUM, &[value(y)], over);
        let z = push(&b::MUL, &[value(1), two], smallvec![]);
        let both = push(&b::ADD, &[value(z), value(sums)], smallvec![]);
        let last = push(&b::MUL, &[value(both), two], smallvec![]);
        trace.outputs = vec![last];
        compare(&mut NativeEngine::new(1), &trace, &mut Dice::new(5)).unwrap();
    }
}

/// Parts assigned to zeros and added, as in the gradients of slices.
#[test]
fn sums_of_slices_assigned_to_zeros_are_merged() {
    let meta = |dims: &[usize]| Meta::new(DType::F32, Shape::new(dims).unwrap());
    let places: [&[(i64, usize)]; 3] =
        [&[(2, 2), (0, 2), (4, 2)], &[(0, 2), (3, 3)], &[(0, 4), (3, 3), (1, 1)]];
    for (seed, places) in places.into_iter().enumerate() {
        let inputs = places.iter().map(|&(_, rows)| Input::Tensor(meta(&[5, rows, 3])));
        let mut trace = Trace::new(inputs.collect());
        let lowers = |_: &'static Operation| true;
        let mut push = |operation, operands: &[Source], attributes: Attributes| {
            let operands = operands.iter().copied().collect();
            trace.push(&lowers, operation, operands, attributes, smallvec![]).unwrap()
        };
        let mut total = None;
        for (value, &(start, rows)) in places.iter().enumerate() {
            let whole = smallvec![Attribute::ints(&[5i64, 6, 3]), Attribute::DType(DType::F32)];
            let zeros = push(&create::FULL, &[Operand::Scalar(Scalar::Int(0))], whole);
            let region = [[0, start, 0], [5, rows as i64, 3], [1, 1, 1]];
            let region = region.map(|ints| Attribute::ints(&ints)).into_iter().collect();
            let operands = [Operand::Tensor(zeros), Operand::Tensor(value as u32)];
            let part = push(&slice::SLICE_ASSIGN, &operands, region);
            total = Some(match total {
                Some(total) => {
                    push(&b::ADD, &[Operand::Tensor(total), Operand::Tensor(part)], smallvec![])
                }
                None => part,
            });
        }
        trace.outputs = total.into_iter().collect();
        let mut engine = NativeEngine::new(2);
        compare(&mut engine, &trace, &mut Dice::new(seed as u64)).unwrap();
    }
}
