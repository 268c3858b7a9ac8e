//! Reductions of tiles by dtype: [`crate::fold`] behind function pointers. Reductions of rows are
//! here, those over all tiles in [`super::epilogue`].

use gt_ir::ops::reduce as r;
use gt_ir::trace::TraceStep;
use gt_ir::{DType, Meta};
use gt_worker::EngineError;

use super::access::Tile;
use super::epilogue::{self, Folded, PartialFold};
use super::group::EpilogueKind;
use crate::element::Number;
use crate::fold::{self, Fold, Largest, Mean, Smallest, Sum};
use crate::tensor::Tensor;
use crate::uninit::Uninit;

/// A reduction of floats of one dtype. Totals are stored as float64, which represents them exactly.
#[derive(Clone, Copy)]
pub struct Folding {
    dtype: DType,
    run: unsafe fn(x: *const u8, n: usize) -> f64,
    merge: fn(f64, f64) -> f64,
    finish: unsafe fn(total: f64, count: usize, out: *mut u8),
    part: fn(kind: EpilogueKind, piece: &Tile, frame: &Tile) -> Box<dyn PartialFold>,
    total: fn(parts: &[Folded]) -> f64,
    start: f64,
}

impl Folding {
    /// Returns the dtype that the reduction is computed in.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Creates the partial fold of a piece.
    pub fn part(&self, kind: EpilogueKind, piece: &Tile, frame: &Tile) -> Box<dyn PartialFold> {
        (self.part)(kind, piece, frame)
    }

    /// Merges the totals of the pieces, in their order.
    pub fn totals(&self, kind: EpilogueKind, parts: &[Folded], frame: &Tile) -> Vec<f64> {
        if kind == EpilogueKind::Total {
            return vec![(self.total)(parts)];
        }
        let mut totals = vec![self.start; frame.columns];
        for part in parts {
            let (column, part) = part.columns();
            for (total, part) in totals[column..].iter_mut().zip(part) {
                *total = (self.merge)(*total, *part);
            }
        }
        totals
    }

    /// Folds `n` elements.
    ///
    /// # Safety
    /// `n` elements of the dtype can be read at `x`, aligned.
    pub unsafe fn run(&self, x: *const u8, n: usize) -> f64 {
        // SAFETY: the caller's promise.
        unsafe { (self.run)(x, n) }
    }

    /// Writes the result of folding `count` elements.
    ///
    /// # Safety
    /// An element of the dtype can be written at `out`, aligned.
    pub unsafe fn finish(&self, total: f64, count: usize, out: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { (self.finish)(total, count, out) }
    }

    /// Returns a tensor of results, each of folding `count` elements.
    pub fn results(&self, totals: &[f64], count: usize, meta: Meta) -> Result<Tensor, EngineError> {
        let mut out = Uninit::new(meta)?;
        assert!(meta.dtype == self.dtype && out.numel() == totals.len(), "a total for each result");
        let (to, size) = (out.write(), meta.dtype.size());
        for (index, total) in totals.iter().enumerate() {
            // SAFETY: the output has as many elements of this dtype as there are totals.
            unsafe { self.finish(*total, count, to.add(index * size)) };
        }
        // SAFETY: every element has been written.
        Ok(unsafe { out.finish() })
    }
}

/// Returns the folding of a reduction step; `None` if the step cannot be fused.
pub fn folding(step: &TraceStep, operand: DType) -> Option<Folding> {
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
    F: Fold<f32> + Fold<f64> + 'static,
    <F as Fold<f32>>::Total: TotalAsF64,
    <F as Fold<f64>>::Total: TotalAsF64,
{
    match dtype {
        DType::F32 => Some(of::<f32, F>(dtype)),
        DType::F64 => Some(of::<f64, F>(dtype)),
        _ => None,
    }
}

fn of<T: Number, F: Fold<T> + 'static>(dtype: DType) -> Folding
where
    F::Total: TotalAsF64,
{
    Folding {
        dtype,
        run: run::<T, F>,
        merge: |a, b| F::merge(F::Total::of_f64(a), F::Total::of_f64(b)).into_f64(),
        finish: finish::<T, F>,
        part: |kind, piece, frame| match kind {
            EpilogueKind::Total => Box::new(epilogue::FoldRun::<T, F>::new(piece, frame)),
            EpilogueKind::Columns => Box::new(epilogue::ColumnFolds::<T, F>::new(piece)),
        },
        total: epilogue::total::<T, F>,
        start: F::START_TOTAL.into_f64(),
    }
}

/// Converts totals to float64 and back, without loss.
pub trait TotalAsF64 {
    fn into_f64(self) -> f64;
    fn of_f64(total: f64) -> Self;
}

impl TotalAsF64 for f64 {
    fn into_f64(self) -> f64 {
        self
    }

    fn of_f64(total: f64) -> f64 {
        total
    }
}

impl TotalAsF64 for f32 {
    fn into_f64(self) -> f64 {
        f64::from(self)
    }

    fn of_f64(total: f64) -> f32 {
        total as f32
    }
}

/// # Safety
/// As for [`Folding::run`], of type T.
unsafe fn run<T: Number, F: Fold<T>>(x: *const u8, n: usize) -> f64
where
    F::Total: TotalAsF64,
{
    // SAFETY: the caller's promise.
    fold::row::<T, F>(unsafe { std::slice::from_raw_parts(x.cast(), n) }).into_f64()
}

/// # Safety
/// As for [`Folding::finish`], of type T.
unsafe fn finish<T: Number, F: Fold<T>>(total: f64, count: usize, out: *mut u8)
where
    F::Total: TotalAsF64,
{
    // SAFETY: the caller's promise.
    unsafe { out.cast::<T>().write(F::finish(F::Total::of_f64(total), count)) }
}
