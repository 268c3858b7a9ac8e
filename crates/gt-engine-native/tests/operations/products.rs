//! Products of odd shapes: small ones, with a single row, column or depth, and ones that are split
//! over threads into parts of which the last is small.

use gt_ir::operation::Sample;
use gt_ir::{DType, Meta, Operand, ops};

use crate::operations::machine::{Layout, Machine, shape};
use crate::operations::{check, compute, draw, reference};

/// Rows, depth and columns of the products.
const SHAPES: [[usize; 3]; 14] = [
    [1, 1, 1],
    [8, 8, 8],
    [16, 16, 16],
    [17, 33, 7],
    [3, 5, 127],
    [64, 63, 65],
    [127, 129, 131],
    [1, 1000, 1100],
    [1001, 1, 1049],
    [1100, 1000, 1],
    [2, 700, 801],
    [801, 700, 2],
    [273, 301, 211],
    [211, 601, 401],
];

/// Checks that every element is right, and the same to the last bit for any number of threads.
#[track_caller]
fn check_product(dtype: DType, [rows, depth, columns]: [usize; 3], layout: Layout) {
    let matrix = |dims: [usize; 2], number| {
        Operand::Tensor(draw(Meta::new(dtype, shape(&dims)), -0.1, 0.1, number))
    };
    let inputs = vec![matrix([rows, depth], 1), matrix([depth, columns], 2)];
    let sample = Sample { operands: Default::default(), attributes: Default::default() };
    let operation = &ops::matmul::MATMUL;
    let output = Meta::new(dtype, shape(&[rows, columns]));
    let want = reference::compute(operation, &inputs, &sample.attributes, output);
    let run = |threads| compute(&mut Machine::new(threads), operation, &inputs, &sample, layout);
    let one = run(1);
    let context = format!("{dtype:?} {rows} x {depth} x {columns} {layout:?}");
    check(&one, &want.expect("matmul has a reference"), &context);
    for threads in [2, 3, 8] {
        assert!(run(threads).bytes == one.bytes, "{context}, {threads} threads");
    }
}

#[test]
fn products_of_odd_shapes_do_not_depend_on_the_number_of_threads() {
    for lengths in SHAPES {
        for layout in [Layout::Contiguous, Layout::Permuted, Layout::Sliced] {
            check_product(DType::F32, lengths, layout);
        }
        check_product(DType::F64, lengths, Layout::Contiguous);
    }
}
