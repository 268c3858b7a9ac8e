//! The gradients of softmax and log_softmax, row by row. The formulas are in
//! `gt_ir::ops::gradients`.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

use super::for_each_block;
use crate::axis_rows::AxisRows;
use crate::element::compute_dtype;
use crate::fold::{self, Fold, Sum};
use crate::math::Float;
use crate::simd::vectorized;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;

pub fn softmax_backward(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    along_axis::<false>(threads, operands, attributes, output)
}

pub fn log_softmax_backward(
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
    let grad = AxisRows::new(threads, tensor(&mut operands, 0)?, attributes, dtype)?;
    let y = AxisRows::new(threads, tensor(&mut operands, 1)?, attributes, dtype)?;
    let mut out = grad.results(dtype, grad.length())?;
    match dtype {
        DType::F64 => write::<f64, LOG>(threads, &grad, &y, out.slots()),
        _ => write::<f32, LOG>(threads, &grad, &y, out.slots()),
    }
    // SAFETY: `write` has written every element.
    grad.back(threads, unsafe { out.finish() }, output.dtype)
}

fn write<T: Float, const LOG: bool>(
    threads: &mut Threads,
    grad: &AxisRows,
    y: &AxisRows,
    out: &mut [MaybeUninit<T>],
) where
    Sum: Fold<T>,
{
    let length = grad.length();
    let (grad, y) = (grad.rows::<T>(), y.rows::<T>());
    assert!(grad.len() == y.len() && grad.len() == out.len(), "a gradient for each element");
    for_each_block(threads, out, length, |first, out| {
        let (grad, y) = (&grad[first..][..out.len()], &y[first..][..out.len()]);
        if LOG { of_log_softmax(grad, y, out, length) } else { of_softmax(grad, y, out, length) }
    });
}

/// Writes y (grad - sum(grad y)) for each row, every element of the output.
fn of_softmax<T: Float>(grad: &[T], y: &[T], out: &mut [MaybeUninit<T>], length: usize)
where
    Sum: Fold<T>,
{
    let product = fill(out, grad, y, |grad, y| grad.times(y));
    let rows = grad.chunks_exact(length).zip(y.chunks_exact(length));
    for (out, (grad, y)) in product.chunks_exact_mut(length).zip(rows) {
        let total = Sum::finish(fold::row::<T, Sum>(out), length);
        vectorized(
            #[inline(always)]
            || {
                for ((out, grad), y) in out.iter_mut().zip(grad).zip(y) {
                    *out = y.times(grad.minus(total));
                }
            },
        );
    }
}

/// Writes grad - exp(y) sum(grad) for each row, every element of the output.
fn of_log_softmax<T: Float>(grad: &[T], y: &[T], out: &mut [MaybeUninit<T>], length: usize)
where
    Sum: Fold<T>,
{
    let softmax = fill(out, grad, y, |_, y| y.exp());
    for (out, grad) in softmax.chunks_exact_mut(length).zip(grad.chunks_exact(length)) {
        let total = Sum::finish(fold::row::<T, Sum>(grad), length);
        vectorized(
            #[inline(always)]
            || {
                for (out, grad) in out.iter_mut().zip(grad) {
                    *out = grad.minus(out.times(total));
                }
            },
        );
    }
}

/// Writes `value` of each pair of elements.
fn fill<'a, T: Float>(
    out: &'a mut [MaybeUninit<T>],
    grad: &[T],
    y: &[T],
    value: impl Fn(T, T) -> T,
) -> &'a mut [T] {
    assert!(grad.len() == out.len() && y.len() == out.len());
    vectorized(
        #[inline(always)]
        || {
            for ((out, grad), y) in out.iter_mut().zip(grad).zip(y) {
                out.write(value(*grad, *y));
            }
        },
    );
    // SAFETY: every element has just been written, since the slices have equal lengths.
    unsafe { &mut *(std::ptr::from_mut(out) as *mut [T]) }
}
