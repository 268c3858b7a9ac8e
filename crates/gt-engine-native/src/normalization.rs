//! Layer normalization and its gradients, row by row: a row is read once and stays in the cache for
//! its statistics. The formulas are in `gt_ir::ops::normalization`.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::operation::{float, int};
use gt_ir::{Attributes, DType, Meta, Operand};
use gt_worker::EngineError;

use crate::budget;
use crate::cast;
use crate::element::compute_dtype;
use crate::fold::{self, Fold, Sum};
use crate::math::Float;
use crate::simd::vectorized;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Elements that one thread processes at a time.
const PIECE: usize = 1 << 15;
/// Rows that are summed in their own type; the sums of these are added in float64.
const ROWS: usize = 64;

/// Floats whose sums are accumulated in float64.
trait NormalizationFloat: Float {
    /// Rounds to this type.
    fn of(value: f64) -> Self;
    /// Returns the mean of `value` over the elements of several rows of one length.
    fn mean<const N: usize>(rows: [&[Self]; N], value: impl Fn([Self; N]) -> Self + Copy) -> f64;
}

macro_rules! real {
    ($($type:ty)*) => { $(
        impl NormalizationFloat for $type {
            #[inline(always)]
            fn of(value: f64) -> $type {
                value as $type
            }

            #[inline(always)]
            fn mean<const N: usize>(
                rows: [&[$type]; N],
                value: impl Fn([$type; N]) -> $type + Copy,
            ) -> f64 {
                fold::row_of::<$type, Sum, N>(rows, value) / rows[0].len() as f64
            }
        }
    )* };
}

real!(f32 f64);

/// The statistics of a row.
#[derive(Clone, Copy)]
struct Statistics<T> {
    mean: T,
    /// 1 / sqrt(var + eps)
    scale: f64,
}

impl<T: NormalizationFloat> Statistics<T> {
    #[inline(always)]
    fn new(x: &[T], eps: f64) -> Statistics<T> {
        let mean = T::of(T::mean([x], |[x]| x));
        let var = T::mean([x], |[x]| {
            let centered = x.minus(mean);
            centered.times(centered)
        });
        Statistics { mean, scale: 1.0 / (var + eps).sqrt() }
    }
}

pub fn layer_norm(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let length = row_length(output, attributes);
    let (dtype, eps) = (compute_dtype(output.dtype), float(attributes, 1));
    let x = contiguous(threads, &mut operands, 0, dtype)?;
    let weight = row_of(threads, &mut operands, 1, dtype)?;
    let bias = row_of(threads, &mut operands, 2, dtype)?;
    let _rows = budget::scratch(2 * length * dtype.size())?;
    let mut out = Uninit::new(x.meta())?;
    match dtype {
        DType::F64 => normalize::<f64>(threads, &x, &weight, &bias, eps, &mut out, length),
        _ => normalize::<f32>(threads, &x, &weight, &bias, eps, &mut out, length),
    }
    // SAFETY: every element has been written.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

/// Writes every element of the output.
fn normalize<T: NormalizationFloat>(
    threads: &mut Threads,
    x: &Tensor,
    weight: &NormalizedRow,
    bias: &NormalizedRow,
    eps: f64,
    out: &mut Uninit,
    length: usize,
) {
    let x = x.as_slice::<T>();
    let (weight, bias) = (weight.values::<T>(length), bias.values::<T>(length));
    for_each_row(threads, out.slots::<T>(), length, |row, out| {
        let x = &x[row * length..][..length];
        vectorized(
            #[inline(always)]
            || {
                let Statistics { mean, scale } = Statistics::new(x, eps);
                let scale = T::of(scale);
                for (((out, x), weight), bias) in out.iter_mut().zip(x).zip(&weight).zip(&bias) {
                    out.write(x.minus(mean).times(scale).times(*weight).plus(*bias));
                }
            },
        );
    });
}

pub fn layer_norm_backward(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let length = row_length(output, attributes);
    let (dtype, eps) = (compute_dtype(output.dtype), float(attributes, 1));
    let grad = contiguous(threads, &mut operands, 0, dtype)?;
    let x = contiguous(threads, &mut operands, 1, dtype)?;
    let weight = row_of(threads, &mut operands, 2, dtype)?;
    let mut out = Uninit::new(x.meta())?;
    match dtype {
        DType::F64 => project::<f64>(threads, &grad, &x, &weight, eps, &mut out, length),
        _ => project::<f32>(threads, &grad, &x, &weight, eps, &mut out, length),
    }
    // SAFETY: every element has been written.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

/// Writes every element of the output.
fn project<T: NormalizationFloat>(
    threads: &mut Threads,
    grad: &Tensor,
    x: &Tensor,
    weight: &NormalizedRow,
    eps: f64,
    out: &mut Uninit,
    length: usize,
) {
    let (grad, x, weight) = (grad.as_slice::<T>(), x.as_slice::<T>(), weight.values::<T>(length));
    assert!(grad.len() == x.len(), "a gradient for each element");
    for_each_row(threads, out.slots::<T>(), length, |row, out| {
        let (x, grad) = (&x[row * length..][..length], &grad[row * length..][..length]);
        vectorized(
            #[inline(always)]
            || {
                let Statistics { mean, scale } = Statistics::new(x, eps);
                let product = T::mean([grad, &weight, x], |[grad, weight, x]| {
                    grad.times(weight).times(x.minus(mean))
                });
                let share = T::of(product * scale * scale);
                let scale = T::of(scale);
                let middle = T::of(T::mean([grad, &weight], |[grad, weight]| grad.times(weight)));
                for (((out, x), grad), weight) in out.iter_mut().zip(x).zip(grad).zip(&weight) {
                    let along = x.minus(mean).times(share);
                    let rest = grad.times(*weight).minus(middle).minus(along);
                    out.write(rest.times(scale));
                }
            },
        );
    });
}

pub fn layer_norm_weight_backward(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let (dtype, eps) = (compute_dtype(output.dtype), float(attributes, 1));
    let grad = contiguous(threads, &mut operands, 0, dtype)?;
    let x = contiguous(threads, &mut operands, 1, dtype)?;
    let mut out = Uninit::new(Meta::new(dtype, output.shape))?;
    let length = output.shape.numel();
    let rows = x.numel() / length.max(1);
    let _sums = budget::scratch(rows.div_ceil(ROWS) * length * dtype.size())?;
    match dtype {
        DType::F64 => add_rows::<f64>(threads, &grad, &x, eps, &mut out),
        _ => add_rows::<f32>(threads, &grad, &x, eps, &mut out),
    }
    // SAFETY: every element has been written.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

/// Sums over the rows; writes every element of the output, which is as long as a row.
fn add_rows<T: NormalizationFloat>(
    threads: &mut Threads,
    grad: &Tensor,
    x: &Tensor,
    eps: f64,
    out: &mut Uninit,
) where
    Sum: Fold<T>,
{
    let (grad, x, out) = (grad.as_slice::<T>(), x.as_slice::<T>(), out.slots::<T>());
    let length = out.len();
    assert!(grad.len() == x.len(), "a gradient for each element");
    if length == 0 {
        return;
    }
    // The same rows are summed together whatever the number of threads.
    let piece = ROWS * length;
    let mut sums = vec![T::ZERO; x.len().div_ceil(piece) * length];
    threads.for_each_part(&mut sums, length, |index, sums| {
        let end = x.len().min((index + 1) * piece);
        let rows = index * piece..end;
        let grads = grad[rows.clone()].chunks_exact(length);
        for (x, grad) in x[rows].chunks_exact(length).zip(grads) {
            vectorized(
                #[inline(always)]
                || {
                    let Statistics { mean, scale } = Statistics::new(x, eps);
                    let scale = T::of(scale);
                    for ((sum, x), grad) in sums.iter_mut().zip(x).zip(grad) {
                        *sum = sum.plus(grad.times(x.minus(mean).times(scale)));
                    }
                },
            );
        }
    });
    let pieces = sums.len() / length;
    fold::columns::<T, Sum>(&sums, pieces, out);
}

/// Calls `body` with the number of each row and its output.
fn for_each_row<T: NormalizationFloat>(
    threads: &mut Threads,
    out: &mut [MaybeUninit<T>],
    length: usize,
    body: impl Fn(usize, &mut [MaybeUninit<T>]) + Sync,
) {
    if out.is_empty() {
        return;
    }
    let rows = (PIECE / length).max(1);
    let part = |piece: usize, out: &mut [MaybeUninit<T>]| {
        for (index, out) in out.chunks_exact_mut(length).enumerate() {
            body(piece * rows + index, out);
        }
    };
    if out.len() < 4 * PIECE {
        out.chunks_mut(rows * length).enumerate().for_each(|(piece, out)| part(piece, out));
    } else {
        threads.for_each_part(out, rows * length, part);
    }
}

/// A parameter with one value for each element of a row, such as weight or bias.
enum NormalizedRow {
    Number(f64),
    Tensor(Tensor),
}

impl NormalizedRow {
    fn values<T: NormalizationFloat>(&self, length: usize) -> Vec<T> {
        match self {
            NormalizedRow::Number(number) => vec![T::of(*number); length],
            NormalizedRow::Tensor(tensor) => {
                assert!(tensor.numel() == length, "a value for each element of a row");
                tensor.as_slice::<T>().to_vec()
            }
        }
    }
}

fn row_of(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    index: usize,
    dtype: DType,
) -> Result<NormalizedRow, EngineError> {
    match operands[index] {
        Operand::Scalar(number) => Ok(NormalizedRow::Number(number.as_f64())),
        Operand::Tensor(_) => {
            Ok(NormalizedRow::Tensor(contiguous(threads, operands, index, dtype)?))
        }
    }
}

fn contiguous(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    index: usize,
    dtype: DType,
) -> Result<Tensor, EngineError> {
    let given = tensor(operands, index)?;
    cast::to(threads, given, dtype)?.contiguous_with(threads)
}

/// Returns the number of elements of a row: of the last axes, whose number is attribute 0.
fn row_length(meta: Meta, attributes: &Attributes) -> usize {
    let start = meta.shape.rank().saturating_sub(int(attributes, 0) as usize);
    meta.shape[start..].iter().product()
}
