//! Batches of matrices: splits the tensors of an operation into matrices, which threads process
//! independently.

use bytemuck::Pod;
use gt_ir::Meta;
use gt_ir::instruction::Operands;
use gt_linalg::Unsolved;
use gt_worker::EngineError;
use num_complex::Complex;

use crate::budget::{self, Scratch};
use crate::element::{self, Element};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// An element of matrices, and the element type that tensors store it as.
pub trait LinalgNumber: gt_linalg::MatrixElement<Real: Pod> + Pod {
    type Element: Element;
    type RealElement: Element;
    type ComplexElement: Element;
}

macro_rules! numbers {
    ($($number:ty: $element:ty, $real:ty);*) => { $(
        impl LinalgNumber for $number {
            type Element = $element;
            type RealElement = $real;
            type ComplexElement = element::Complex<$real>;
        }
    )* };
}

numbers! {
    f32: f32, f32;
    f64: f64, f64;
    Complex<f32>: element::Complex<f32>, f32;
    Complex<f64>: element::Complex<f64>, f64
}

/// The number of matrices of a batch and their size.
pub struct MatrixBatch {
    pub count: usize,
    pub rows: usize,
    pub columns: usize,
}

impl MatrixBatch {
    /// Describes a tensor of rank 2 or more, whose last two axes are the rows and columns.
    pub fn of(tensor: &Tensor) -> MatrixBatch {
        let dims = tensor.shape().dims();
        let (batch, matrix) = dims.split_at(dims.len() - 2);
        MatrixBatch { count: batch.iter().product(), rows: matrix[0], columns: matrix[1] }
    }
}

/// Takes an operand as contiguous, row-major matrices.
pub fn operand(operands: &mut Operands<Tensor>, index: usize) -> Result<Tensor, EngineError> {
    tensor(operands, index)?.contiguous()
}

/// Returns the elements of a tensor as elements of matrices.
pub fn numbers<T: LinalgNumber>(tensor: &Tensor) -> &[T] {
    bytemuck::cast_slice(tensor.as_slice::<T::Element>())
}

/// A result, initialized to zeros.
pub struct BatchResults(Uninit);

impl BatchResults {
    /// Allocates a result.
    pub fn new(meta: Meta) -> Result<BatchResults, EngineError> {
        Ok(BatchResults(Uninit::new(meta)?))
    }

    /// Splits the result into the parts of `count` matrices, filled with zeros.
    pub fn parts<E: Element, T: Pod>(&mut self, count: usize) -> Vec<&mut [T]> {
        let mut rest: &mut [T] = bytemuck::cast_slice_mut(self.0.zeroed::<E>());
        let each = rest.len() / count.max(1);
        let next = |_| rest.split_off_mut(..each).expect("the output has a part for each matrix");
        (0..count).map(next).collect()
    }

    /// Returns the tensor, after [`BatchResults::parts`] has been called.
    pub fn finish(self) -> Tensor {
        // SAFETY: every operation calls `parts` for each of its results, which initializes it.
        unsafe { self.0.finish() }
    }
}

/// Returns matrix `index` of a batch, whose matrices have `each` elements.
pub fn nth<T>(all: &[T], index: usize, each: usize) -> &[T] {
    &all[index * each..][..each]
}

/// The size of an entry in the list of parts, in bytes.
const PARTS: usize = 128;

/// Reserves scratch memory of `numbers` elements for each thread that works on a batch, and for the
/// list of parts.
///
/// # Errors
/// The budget is exceeded.
pub fn scratch<T>(
    threads: &Threads,
    batch: &MatrixBatch,
    numbers: usize,
) -> Result<Scratch, EngineError> {
    let together = threads.count().min(batch.count);
    let numbers = numbers.saturating_mul(size_of::<T>()).saturating_mul(together);
    budget::scratch(numbers.saturating_add(batch.count.saturating_mul(PARTS)))
}

/// Calls `work` with the parts of each matrix, on several threads.
pub fn each<P: Send>(threads: &mut Threads, parts: Vec<P>, work: impl Fn(usize, &mut P) + Sync) {
    let mut parts = parts;
    threads.for_each_part(&mut parts, 1, |index, part| work(index, &mut part[0]));
}

/// As [`each`], for work that may fail.
pub fn each_solved<P: Send>(
    name: &str,
    threads: &mut Threads,
    parts: Vec<P>,
    work: impl Fn(usize, &mut P) -> Result<(), Unsolved> + Sync,
) -> Result<(), EngineError> {
    let mut parts: Vec<_> = parts.into_iter().map(|part| (part, Ok(()))).collect();
    threads.for_each_part(&mut parts, 1, |index, part| {
        let (part, done) = &mut part[0];
        *done = work(index, part);
    });
    let failed = parts.iter().enumerate().find_map(|(index, (_, done))| Some((index, done.err()?)));
    let Some((index, why)) = failed else { return Ok(()) };
    let why = match why {
        Unsolved::NotFinite => "has values that are infinite or not a number",
        Unsolved::NotConverged => "has none that the algorithm converges to",
    };
    Err(EngineError::Other(format!("{name}: matrix {index} of the batch {why}")))
}

/// Defines an operation by a function that is generic over the element type.
macro_rules! operations {
    ($($name:ident by $function:ident;)*) => { $(
        pub fn $name(
            threads: &mut Threads,
            operands: Operands<Tensor>,
            attributes: &Attributes,
            outputs: &[Meta],
        ) -> Result<Vec<Tensor>, EngineError> {
            let dtype = operands[0].tensor().map_or(DType::F32, Tensor::dtype);
            match dtype {
                DType::F64 => $function::<f64>(threads, operands, attributes, outputs),
                DType::C64 => $function::<Complex<f32>>(threads, operands, attributes, outputs),
                DType::C128 => $function::<Complex<f64>>(threads, operands, attributes, outputs),
                _ => $function::<f32>(threads, operands, attributes, outputs),
            }
        }
    )* };
}

pub(super) use operations;
