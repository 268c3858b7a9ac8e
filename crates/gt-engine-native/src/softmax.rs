//! softmax and log_softmax in one go, row by row.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::operation::int;
use gt_ir::shape::axis;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;
use smallvec::SmallVec;

use crate::cast;
use crate::element::compute_dtype;
use crate::fold::{self, Fold, Largest, Sum};
use crate::math::Float;
use crate::simd::vectorized;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Elements whose exponentials are taken together: short rows share a block.
const BLOCK: usize = 1024;
/// Elements that one thread takes at a time.
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
    let rank = output.shape.rank();
    let along = axis(int(attributes, 0), rank, "softmax")
        .map_err(|error| EngineError::Other(error.to_string()))?;
    let dtype = compute_dtype(output.dtype);
    let x = tensor(&mut operands, 0)?;
    let mut x = cast::to(threads, x, dtype)?;
    // The axis goes to the end and, as a view, back.
    let mut order: SmallVec<[usize; 8]> = (0..rank).collect();
    if rank > 0 && along + 1 < rank {
        order.swap(along, rank - 1);
        x = x.permute(&order);
    }
    let x = x.contiguous_with(threads)?;
    let mut out = Uninit::new(x.meta())?;
    let length = x.shape().dims().last().copied().unwrap_or(1);
    if x.numel() > 0 {
        match dtype {
            DType::F64 => split::<f64, LOG>(threads, &x, &mut out, length),
            _ => split::<f32, LOG>(threads, &x, &mut out, length),
        }
    }
    // SAFETY: `split` has written every element.
    let out = unsafe { out.finish() };
    cast::to(threads, out.permute(&order), output.dtype)
}

fn split<T: Float, const LOG: bool>(
    threads: &mut Threads,
    x: &Tensor,
    out: &mut Uninit,
    length: usize,
) where
    Sum: Fold<T>,
{
    let values = x.as_slice::<T>();
    let step = (PIECE / length).max(1) * length;
    let part = |piece: usize, out: &mut [MaybeUninit<T>]| {
        let group = (BLOCK / length).max(1) * length;
        let values = values[piece * step..][..out.len()].chunks(group);
        for (x, out) in values.zip(out.chunks_mut(group)) {
            rows::<T, LOG>(x, out, length);
        }
    };
    let out = out.slots::<T>();
    if values.len().div_ceil(step) < 4 {
        out.chunks_mut(step).enumerate().for_each(|(piece, out)| part(piece, out));
    } else {
        threads.for_each_part(out, step, part);
    }
}

/// One long row, or some that fit a block; writes every element of the output.
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
    // SAFETY: every element has just been written, row by row, of which none is cut short.
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

/// A logarithm, compiled for the machine as all others are.
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
