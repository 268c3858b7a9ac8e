//! Results do not depend on the number of threads. `tests/ops/test_attention.py` compares values
//! with PyTorch's.

use gt_ir::instruction::Operands;
use gt_ir::{Attribute, Attributes, DType, Meta, Operand, Scalar, Shape};
use smallvec::smallvec;

use super::{attention, attention_backward};
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

fn meta(dims: &[usize]) -> Meta {
    Meta::new(DType::F32, Shape::new(dims).unwrap())
}

/// Returns pseudo-random numbers from -1 to 1 for a seed.
fn numbers(dims: &[usize], seed: u32) -> Tensor {
    let mut out = Uninit::new(meta(dims)).unwrap();
    let mut state = seed;
    for slot in out.slots::<f32>() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        slot.write((state >> 8) as f32 / 8_388_608.0 - 1.0);
    }
    // SAFETY: every slot has been written.
    unsafe { out.finish() }
}

/// Returns the results of the forward and the backward operation.
fn run(threads: usize, heads: usize, is_causal: bool) -> Vec<Tensor> {
    let (queries, keys, width, values) = (150, 300, 16, 5);
    let mut threads = Threads::new(threads);
    let tensors = [
        numbers(&[heads, queries, width], 1),
        numbers(&[heads, keys, width], 2),
        numbers(&[heads, keys, values], 3),
    ];
    let attributes: Attributes = smallvec![Attribute::Bool(is_causal), Attribute::Float(0.25)];
    let mask = Operand::Scalar(Scalar::Float(0.0));
    let given: Operands<Tensor> =
        tensors.iter().cloned().map(Operand::Tensor).chain([mask]).collect();
    let outputs = [meta(&[heads, queries, values]), meta(&[heads, queries])];
    let forward = attention(&mut threads, given.clone(), &attributes, &outputs).unwrap();
    let grad = Operand::Tensor(numbers(&[heads, queries, values], 4));
    let given: Operands<Tensor> = [grad]
        .into_iter()
        .chain(given)
        .chain(forward.iter().cloned().map(Operand::Tensor))
        .collect();
    let outputs = tensors.each_ref().map(Tensor::meta);
    let backward = attention_backward(&mut threads, given, &attributes, &outputs).unwrap();
    forward.into_iter().chain(backward).collect()
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    for heads in [1, 3, 20] {
        for is_causal in [false, true] {
            let one = run(1, heads, is_causal);
            for threads in [2, 5] {
                let more = run(threads, heads, is_causal);
                assert!(one.iter().zip(&more).all(|(one, more)| one.bytes() == more.bytes()));
            }
        }
    }
}
