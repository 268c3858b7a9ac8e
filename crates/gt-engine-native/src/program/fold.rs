//! Reductions of tiles, by dtype: what [`crate::fold`] does, behind pointers.

use gt_ir::DType;
use gt_ir::ops::reduce as r;
use gt_worker::plan::Step;

use crate::element::Number;
use crate::fold::{self, Fold, Largest, Mean, Smallest, Sum};
use crate::simd::vectorized;

/// A reduction of floats of one dtype. Totals are held as float64, which holds each of them.
#[derive(Clone, Copy)]
pub struct Folding {
    pub dtype: DType,
    /// Folds `n` elements.
    pub run: unsafe fn(x: *const u8, n: usize) -> f64,
    pub merge: fn(f64, f64) -> f64,
    /// Writes the result of folding `count` elements.
    pub finish: unsafe fn(total: f64, count: usize, out: *mut u8),
    /// Folds rows of `width` elements into as many totals.
    pub columns: unsafe fn(x: *const u8, rows: usize, width: usize, totals: &mut [f64]),
    pub start: f64,
}

/// The folding of a reduction; `None` for those that are computed by themselves.
pub fn folding(step: &Step, operand: DType) -> Option<Folding> {
    if operand != step.output.dtype {
        return None;
    }
    let by_dtype: fn(DType) -> Option<Folding> = match step.operation.id {
        id if id == r::SUM.id => of_dtype::<Sum>,
        id if id == r::MEAN.id => of_dtype::<Mean>,
        id if id == r::AMAX.id => of_dtype::<Largest>,
        id if id == r::AMIN.id => of_dtype::<Smallest>,
        _ => return None,
    };
    by_dtype(operand)
}

fn of_dtype<F>(dtype: DType) -> Option<Folding>
where
    F: Fold<f32> + Fold<f64>,
    <F as Fold<f32>>::Total: Wide,
    <F as Fold<f64>>::Total: Wide,
{
    match dtype {
        DType::F32 => Some(of::<f32, F>(dtype)),
        DType::F64 => Some(of::<f64, F>(dtype)),
        _ => None,
    }
}

fn of<T: Number, F: Fold<T>>(dtype: DType) -> Folding
where
    F::Total: Wide,
{
    Folding {
        dtype,
        run: run::<T, F>,
        merge: |a, b| F::merge(F::Total::narrow(a), F::Total::narrow(b)).wide(),
        finish: finish::<T, F>,
        columns: columns::<T, F>,
        start: F::START_TOTAL.wide(),
    }
}

/// Totals as float64, and back without a loss.
pub trait Wide {
    fn wide(self) -> f64;
    fn narrow(wide: f64) -> Self;
}

impl Wide for f64 {
    fn wide(self) -> f64 {
        self
    }

    fn narrow(wide: f64) -> f64 {
        wide
    }
}

impl Wide for f32 {
    fn wide(self) -> f64 {
        f64::from(self)
    }

    fn narrow(wide: f64) -> f32 {
        wide as f32
    }
}

/// # Safety
/// `x` is good for `n` elements.
unsafe fn run<T: Number, F: Fold<T>>(x: *const u8, n: usize) -> f64
where
    F::Total: Wide,
{
    // SAFETY: the caller's promise.
    fold::row::<T, F>(unsafe { std::slice::from_raw_parts(x.cast(), n) }).wide()
}

/// # Safety
/// `out` has room for an element.
unsafe fn finish<T: Number, F: Fold<T>>(total: f64, count: usize, out: *mut u8)
where
    F::Total: Wide,
{
    // SAFETY: the caller's promise.
    unsafe { out.cast::<T>().write(F::finish(F::Total::narrow(total), count)) }
}

/// # Safety
/// `x` is good for `rows * width` elements; there are `width` totals, at most [`fold::COLUMNS`].
unsafe fn columns<T: Number, F: Fold<T>>(
    x: *const u8,
    rows: usize,
    width: usize,
    totals: &mut [f64],
) where
    F::Total: Wide,
{
    // SAFETY: the caller's promise.
    let x = unsafe { std::slice::from_raw_parts(x.cast::<T>(), rows * width) };
    vectorized(
        #[inline(always)]
        || {
            let mut folded = [F::START; fold::COLUMNS];
            for (strip, totals) in totals.chunks_mut(fold::COLUMNS).enumerate() {
                let folded = &mut folded[..totals.len()];
                folded.fill(F::START);
                for row in x.chunks_exact(width) {
                    let row = &row[strip * fold::COLUMNS..][..folded.len()];
                    for (folded, x) in folded.iter_mut().zip(row) {
                        *folded = F::push(*folded, *x);
                    }
                }
                for (total, folded) in totals.iter_mut().zip(&*folded) {
                    *total = F::total(F::Total::narrow(*total), *folded).wide();
                }
            }
        },
    );
}
