//! Batches of matrices: the tensors of an operation in parts, a thread for each.

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

/// A number of matrices, and the element type that tensors hold it as.
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

/// Matrices of a batch.
pub struct MatrixBatch {
    pub count: usize,
    pub rows: usize,
    pub columns: usize,
}

impl MatrixBatch {
    pub fn of(tensor: &Tensor) -> MatrixBatch {
        let dims = tensor.shape().dims();
        let (batch, matrix) = dims.split_at(dims.len() - 2);
        MatrixBatch { count: batch.iter().product(), rows: matrix[0], columns: matrix[1] }
    }
}

/// An operand, row after row.
pub fn operand(operands: &mut Operands<Tensor>, index: usize) -> Result<Tensor, EngineError> {
    tensor(operands, index)?.contiguous()
}

/// The elements of a tensor as numbers of matrices.
pub fn numbers<T: LinalgNumber>(tensor: &Tensor) -> &[T] {
    bytemuck::cast_slice(tensor.as_slice::<T::Element>())
}

/// A result filled with zeros.
pub struct BatchResults(Uninit);

impl BatchResults {
    pub fn new(meta: Meta) -> Result<BatchResults, EngineError> {
        Ok(BatchResults(Uninit::new(meta)?))
    }

    /// The parts for each of `count` matrices, filled with zeros.
    pub fn parts<E: Element, T: Pod>(&mut self, count: usize) -> Vec<&mut [T]> {
        let mut rest: &mut [T] = bytemuck::cast_slice_mut(self.0.zeroed::<E>());
        let each = rest.len() / count.max(1);
        let next = |_| rest.split_off_mut(..each).expect("a part for each matrix");
        (0..count).map(next).collect()
    }

    /// The tensor, whose parts have been had.
    pub fn finish(self) -> Tensor {
        // SAFETY: `parts` is called for every result, and fills it.
        unsafe { self.0.finish() }
    }
}

/// The part of a batch's numbers that is matrix `index`, of this many numbers each.
pub fn nth<T>(all: &[T], index: usize, each: usize) -> &[T] {
    &all[index * each..][..each]
}

/// The bytes of the parts of an operation's results for a matrix.
const PARTS: usize = 128;

/// Takes what is allocated for this many numbers of scratch in each thread that works on a batch.
///
/// # Errors
/// There is no memory for them.
pub fn scratch<T>(
    threads: &Threads,
    batch: &MatrixBatch,
    numbers: usize,
) -> Result<Scratch, EngineError> {
    let together = threads.count().min(batch.count);
    let numbers = numbers.saturating_mul(size_of::<T>()).saturating_mul(together);
    budget::scratch(numbers.saturating_add(batch.count.saturating_mul(PARTS)))
}

/// Calls `work` with the parts for each matrix, on the threads that there are.
pub fn each<P: Send>(threads: &mut Threads, parts: Vec<P>, work: impl Fn(usize, &mut P) + Sync) {
    let mut parts = parts;
    threads.for_each_part(&mut parts, 1, |index, part| work(index, &mut part[0]));
}

/// As [`each`], of what may have no result.
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

/// Makes an operation of a function of the numbers' type.
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
