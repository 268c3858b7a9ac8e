//! Reductions over axes.
//!
//! The tensor is viewed as outer x reduced x inner, with a copy only if its strides require one.
//! The order of folding depends on these lengths only ([`fold`]).

use gt_ir::instruction::Operands;
use gt_ir::operation::ints;
use gt_ir::shape::axes;
use gt_ir::{Attributes, DType, Meta, Shape};
use gt_worker::EngineError;
use smallvec::SmallVec;

use crate::cast;
use crate::element::{Complex, Number, compute_dtype, with_real};
use crate::fold::pieces;
use crate::fold::{self, All, Any, Fold, Largest, Mean, Product, Smallest, Sum};
use crate::simd::vectorized;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// The dtypes whose results do not depend on the order of folding.
const EXACT: [DType; 2] = [DType::I64, DType::Bool];

/// Reductions of fewer elements stay on one thread.
const PARALLEL: usize = 1 << 17;

/// A tensor viewed as outer x reduced x inner: contiguous, or with repeated elements; in any dtype.
struct ArrangedTensor {
    tensor: Tensor,
    outer: usize,
    reduced: usize,
    inner: usize,
}

/// A permutation of axes.
pub type Order = SmallVec<[usize; 8]>;

/// Views a tensor as outer x reduced x inner, in the order of its axes, so that the order of
/// folding does not depend on its strides. A tensor with repeated elements is not copied.
fn arrange(
    threads: &mut Threads,
    tensor: Tensor,
    reduced_axes: &[usize],
) -> Result<ArrangedTensor, EngineError> {
    let rank = tensor.shape().rank();
    let given: Order = (0..rank).collect();
    let (order, range) = match contiguous_range(&given, reduced_axes) {
        Some(range) => (given, range),
        None => {
            let kept = (0..rank).filter(|axis| !reduced_axes.contains(axis));
            (kept.chain(reduced_axes.iter().copied()).collect(), rank - reduced_axes.len()..rank)
        }
    };
    let tensor = if order.iter().copied().eq(0..rank) { tensor } else { tensor.permute(&order) };
    let strides = tensor.strides();
    let repeats = (0..rank).any(|axis| strides[axis] == 0 && tensor.shape()[axis] > 1);
    arranged(
        if repeats && tensor.numel() > 0 { tensor } else { tensor.contiguous_with(threads)? },
        range,
    )
}

/// As [`arrange`], for folds whose results do not depend on the order: in the order of the memory,
/// if that has the form.
fn arrange_in_memory_order(
    threads: &mut Threads,
    tensor: Tensor,
    reduced_axes: &[usize],
) -> Result<ArrangedTensor, EngineError> {
    let order = memory_order(&tensor);
    if let Some(range) = contiguous_range(&order, reduced_axes) {
        let permuted = tensor.permute(&order);
        if permuted.is_contiguous() {
            return arranged(permuted, range);
        }
    }
    arrange(threads, tensor, reduced_axes)
}

fn arranged(tensor: Tensor, range: std::ops::Range<usize>) -> Result<ArrangedTensor, EngineError> {
    let product = |range: std::ops::Range<usize>| tensor.shape().dims()[range].iter().product();
    let rank = tensor.shape().rank();
    let outer = product(0..range.start);
    let (reduced, inner) = (product(range.clone()), product(range.end..rank));
    Ok(ArrangedTensor { tensor, outer, reduced, inner })
}

/// Returns the axes from the largest stride to the smallest: their order in memory.
fn memory_order(tensor: &Tensor) -> Order {
    let mut order: Order = (0..tensor.shape().rank()).collect();
    let strides = tensor.strides();
    order.sort_by_key(|&axis| -strides[axis]);
    order
}

/// Returns the range of `order` that the reduced axes occupy, if they are adjacent and the other
/// axes are in ascending order, as they have to be in the result.
fn contiguous_range(order: &[usize], reduced_axes: &[usize]) -> Option<std::ops::Range<usize>> {
    let start = order.iter().position(|axis| reduced_axes.contains(axis)).unwrap_or(0);
    let end = start + reduced_axes.len();
    let together = order[start..end].iter().all(|axis| reduced_axes.contains(axis));
    let kept = || order[..start].iter().chain(&order[end..]);
    (together && kept().zip(kept().skip(1)).all(|(a, b)| a < b)).then_some(start..end)
}

/// Reduces the axes in attribute 0, computing in `dtype`.
fn reduce(
    threads: &mut Threads,
    tensor: Tensor,
    attributes: &Attributes,
    output: Meta,
    dtype: DType,
    fold: FoldFn,
) -> Result<Tensor, EngineError> {
    let reduced_axes = checked_axes(ints(attributes, 0), tensor.shape())?;
    // Large tensors are cast while they are folded.
    let is_much = tensor.numel() >= PARALLEL;
    let x = if is_much { tensor } else { cast::to(threads, tensor, dtype)? };
    let is_exact = EXACT.contains(&dtype);
    let arrange = if is_exact { arrange_in_memory_order } else { arrange };
    let x = arrange(threads, x, &reduced_axes)?;
    let mut out = Uninit::new(Meta::new(dtype, output.shape))?;
    fold(threads, &x, &mut out);
    // SAFETY: the fold has written every element.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

/// Returns the axes that an attribute names, checked.
pub fn checked_axes(given: &[i64], shape: &Shape) -> Result<Vec<usize>, EngineError> {
    axes(given, shape.rank(), "reduce").map_err(|error| EngineError::Other(error.to_string()))
}

/// A function that folds a tensor into every element of the output.
type FoldFn = fn(&mut Threads, &ArrangedTensor, &mut Uninit);

fn fold_into<T: Number, F: Fold<T>>(threads: &mut Threads, x: &ArrangedTensor, out: &mut Uninit) {
    let ArrangedTensor { outer, reduced, inner, .. } = *x;
    let out = out.slots::<T>();
    if !x.tensor.is_contiguous() || x.tensor.dtype() != T::DTYPE {
        return pieces::fold::<T, F>(threads, &x.tensor, out, [reduced, inner]);
    }
    let values = x.tensor.as_slice::<T>();
    assert!(out.len() == outer * inner && values.len() == outer * reduced * inner);
    if values.len() < PARALLEL || threads.ways() == 1 && outer * inner > 1 {
        return pieces::fold_slices::<T, F>(values, out, reduced, inner);
    }
    if outer * inner == 1 {
        out[0].write(F::finish(fold::row_with::<T, F>(threads, values), reduced));
    } else if outer > 1 {
        let step = (fold::PIECE / (reduced * inner)).clamp(1, outer);
        threads.for_each_part(out, step * inner, |piece, out| {
            let values = &values[piece * step * reduced * inner..][..out.len() * reduced];
            pieces::fold_slices::<T, F>(values, out, reduced, inner);
        });
    } else {
        fold::columns_with::<T, F>(threads, values, reduced, out);
    }
}

/// Defines a reduction that is computed in a float, complex or int64 dtype, by the result's dtype.
macro_rules! accumulating_reduction {
    ($name:ident, $fold:ident $(, $integer:ty)?) => {
        pub fn $name(
            threads: &mut Threads,
            mut operands: Operands<Tensor>,
            attributes: &Attributes,
            output: Meta,
        ) -> Result<Tensor, EngineError> {
            let x = tensor(&mut operands, 0)?;
            let dtype = compute_dtype(output.dtype);
            let fold: FoldFn = match dtype {
                DType::F64 => fold_into::<f64, $fold>,
                DType::C64 => fold_into::<Complex<f32>, $fold>,
                DType::C128 => fold_into::<Complex<f64>, $fold>,
                $(DType::I64 => fold_into::<$integer, $fold>,)?
                _ => fold_into::<f32, $fold>,
            };
            reduce(threads, x, attributes, output, dtype, fold)
        }
    };
}

accumulating_reduction!(sum, Sum, i64);
accumulating_reduction!(mean, Mean);
accumulating_reduction!(prod, Product, i64);

macro_rules! reduction {
    ($($name:ident, $fold:ident;)*) => { $(
        pub fn $name(
            threads: &mut Threads,
            mut operands: Operands<Tensor>,
            attributes: &Attributes,
            output: Meta,
        ) -> Result<Tensor, EngineError> {
            let x = tensor(&mut operands, 0)?;
            let dtype = compute_dtype(output.dtype);
            let fold: FoldFn = with_real!(dtype, T => fold_into::<T, $fold>);
            reduce(threads, x, attributes, output, dtype, fold)
        }
    )* };
}

reduction! {
    amax, Largest;
    amin, Smallest;
}

macro_rules! truth_reduction {
    ($($name:ident, $fold:ident;)*) => { $(
        pub fn $name(
            threads: &mut Threads,
            mut operands: Operands<Tensor>,
            attributes: &Attributes,
            output: Meta,
        ) -> Result<Tensor, EngineError> {
            let x = tensor(&mut operands, 0)?;
            let fold = fold_into::<crate::element::Bool, $fold>;
            reduce(threads, x, attributes, output, DType::Bool, fold)
        }
    )* };
}

truth_reduction! {
    any, Any;
    all, All;
}

/// Computes running sums along an axis.
pub fn cumsum(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let dtype = compute_dtype(output.dtype);
    let x = cast::to(threads, x, dtype)?.contiguous()?;
    let reduced_axes = match output.shape.rank() {
        0 => Vec::new(),
        _ => checked_axes(&[gt_ir::operation::int(attributes, 0)], x.shape())?,
    };
    let x = arrange(threads, x, &reduced_axes)?;
    let mut out = Uninit::new(Meta::new(dtype, output.shape))?;
    match dtype {
        DType::F64 => scan::<f64, Sum>(&x, &mut out),
        DType::I64 => scan::<i64, Sum>(&x, &mut out),
        DType::C64 => scan::<Complex<f32>, Sum>(&x, &mut out),
        DType::C128 => scan::<Complex<f64>, Sum>(&x, &mut out),
        _ => scan::<f32, Sum>(&x, &mut out),
    }
    // SAFETY: the scan has written every element.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

/// Writes every element of the output.
fn scan<T: Number, F: Fold<T>>(x: &ArrangedTensor, out: &mut Uninit) {
    let (values, out) = (x.tensor.as_slice::<T>(), out.slots::<T>());
    assert!(values.len() == out.len());
    let ArrangedTensor { reduced, inner, .. } = *x;
    if inner == 1 && reduced > 0 {
        for (line, out) in values.chunks_exact(reduced).zip(out.chunks_exact_mut(reduced)) {
            let mut total = F::START_TOTAL;
            for (x, out) in line.iter().zip(out) {
                total = F::total(total, *x);
                out.write(F::finish(total, 1));
            }
        }
        return;
    }
    let mut totals = vec![F::START_TOTAL; inner];
    let rows = values.chunks_exact(inner.max(1)).zip(out.chunks_exact_mut(inner.max(1)));
    for (index, (row, out)) in rows.enumerate() {
        if index % reduced.max(1) == 0 {
            totals.fill(F::START_TOTAL);
        }
        vectorized(
            #[inline(always)]
            || {
                for ((total, x), out) in totals.iter_mut().zip(row).zip(out) {
                    *total = F::total(*total, *x);
                    out.write(F::finish(*total, 1));
                }
            },
        );
    }
}
