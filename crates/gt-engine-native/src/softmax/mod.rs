//! softmax and log_softmax, fused and row by row; [`backward`] has their gradients.

mod backward;

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

pub use backward::{log_softmax_backward, softmax_backward};

use crate::axis_rows::AxisRows;
use crate::element::compute_dtype;
use crate::fold::{self, Fold, Largest, Sum};
use crate::math::Float;
use crate::simd::vectorized;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;

/// Elements whose exponentials are computed together: short rows share a block.
const BLOCK: usize = 1024;
/// Elements that one thread processes at a time.
const PIECE: usize = 1 << 14;

pub fn softmax(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    along_axis::<false>(threads, operands, attributes, output)
}

pub fn log_softmax(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    along_axis::<true>(threads, operands, attributes, output)
}

fn along_axis<const LOG: bool>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let x = AxisRows::new(threads, tensor(&mut operands, 0)?, attributes, dtype)?;
    let mut out = x.results(dtype, x.length())?;
    match dtype {
        DType::F64 => write::<f64, LOG>(threads, &x, out.slots()),
        _ => write::<f32, LOG>(threads, &x, out.slots()),
    }
    // SAFETY: `write` has written every element.
    x.back(threads, unsafe { out.finish() }, output.dtype)
}

fn write<T: Float, const LOG: bool>(threads: &mut Threads, x: &AxisRows, out: &mut [MaybeUninit<T>])
where
    Sum: Fold<T>,
{
    let (x, length) = (x.rows::<T>(), x.length());
    for_each_block(threads, out, length, |first, out| {
        rows::<T, LOG>(&x[first..][..out.len()], out, length);
    });
}

/// Calls `body` with the index of the first element of each block of whole rows, and the block.
fn for_each_block<T: Float>(
    threads: &mut Threads,
    out: &mut [MaybeUninit<T>],
    length: usize,
    body: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    let step = (PIECE / length).max(1) * length;
    let block = (BLOCK / length).max(1) * length;
    let part = |piece: usize, out: &mut [MaybeUninit<T>]| {
        for (index, out) in out.chunks_mut(block).enumerate() {
            body(piece * step + index * block, out);
        }
    };
    if out.len().div_ceil(step) < 4 {
        out.chunks_mut(step).enumerate().for_each(|(piece, out)| part(piece, out));
    } else {
        threads.for_each_part(out, step, part);
    }
}

/// Computes one long row, or several that fit into a block; writes every element of the output.
fn rows<T: Float, const LOG: bool>(x: &[T], out: &mut [MaybeUninit<T>], length: usize)
where
    Sum: Fold<T>,
{
    assert!(x.len() == out.len() && x.len().is_multiple_of(length));
    let mut block = [T::ZERO; BLOCK];
    for (x, out) in x.chunks_exact(length).zip(out.chunks_exact_mut(length)) {
        let largest = fold::row::<T, Largest>(x);
        vectorized(
            #[inline(always)]
            || {
                for (out, x) in out.iter_mut().zip(x) {
                    out.write(x.minus(largest));
                }
            },
        );
    }
    // SAFETY: every element has just been written, as the length is a multiple of a row's.
    let out = unsafe { &mut *(std::ptr::from_mut(out) as *mut [T]) };
    if LOG && length <= BLOCK {
        let block = &mut block[..out.len()];
        exponentials(out, block);
        for (out, row) in out.chunks_exact_mut(length).zip(block.chunks_exact(length)) {
            let total = Sum::finish(fold::row::<T, Sum>(row), length);
            subtract(out, log(total));
        }
    } else if LOG {
        let mut total = <Sum as Fold<T>>::START_TOTAL;
        for out in out.chunks(BLOCK) {
            exponentials(out, &mut block[..out.len()]);
            total = Sum::merge(total, fold::row::<T, Sum>(&block[..out.len()]));
        }
        subtract(out, log(<Sum as Fold<T>>::finish(total, length)));
    } else {
        vectorized(
            #[inline(always)]
            || out.iter_mut().for_each(|x| *x = x.exp()),
        );
        for out in out.chunks_exact_mut(length) {
            let total = Sum::finish(fold::row::<T, Sum>(out), length);
            vectorized(
                #[inline(always)]
                || out.iter_mut().for_each(|x| *x = x.divide(total)),
            );
        }
    }
}

fn exponentials<T: Float>(from: &[T], to: &mut [T]) {
    vectorized(
        #[inline(always)]
        || {
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.exp();
            }
        },
    );
}

/// Computes a logarithm, compiled for the same instruction set as all others.
fn log<T: Float>(x: T) -> T {
    vectorized(
        #[inline(always)]
        || x.log(),
    )
}

fn subtract<T: Float>(values: &mut [T], by: T) {
    vectorized(
        #[inline(always)]
        || values.iter_mut().for_each(|x| *x = x.minus(by)),
    );
}
