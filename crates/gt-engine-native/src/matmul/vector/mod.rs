//! Products of a matrix and a vector. The order of summation does not depend on the strides of the
//! matrix: product `k` of a row is added to lane `k` modulo [`LANES`], the lanes are added in pairs
//! at the end of each block, and blocks are added as those of a [`Sum`].
//!
//! A matrix that is contiguous along rows is summed row by row ([`rows`]), one that is contiguous
//! along columns a strip of columns at a time ([`columns`]); any other is copied one row at a time.

mod columns;
#[cfg(target_arch = "x86_64")]
mod floats;
mod rows;

use std::borrow::Cow;

use gt_ir::DType;

use super::{Matrix, ProductLengths};
use crate::element::{Complex, Number};
use crate::fold::{Fold, Sum};

use crate::simd::{InstructionSet, level, vectorized};

/// Independent sums side by side, enough to fill the vector units.
const LANES: usize = 64;
/// Rows of the result that are summed together: their lanes stay in the caches.
const STRIP: usize = 512;

/// Returns whether this is a product of a matrix and a vector whose sums depend on the order.
pub(super) fn is_by_vector<T: Number>(lengths: ProductLengths) -> bool {
    (lengths.rows == 1 || lengths.columns == 1) && lengths.depth > 0 && !T::DTYPE.is_exact()
}

/// Computes one product with a vector, into rows that are `pitch` elements apart; writes every
/// element.
///
/// # Safety
/// The matrices have these lengths and can be read. `out` has space for the rows, which overlap
/// with neither matrix and which no other thread accesses. [`is_by_vector`] holds.
pub(super) unsafe fn multiply<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    pitch: usize,
) {
    let ProductLengths { rows, depth, columns } = lengths;
    let transposed = Matrix { first: b.first, row: b.column, column: b.row };
    let (matrix, count, vector, step, pitch) = match columns {
        1 => (a, rows, b, b.row, pitch),
        _ => (transposed, columns, a, a.column, 1),
    };
    // SAFETY: the caller's promise: the vector is as long as the depth.
    let vector = unsafe { run::<T>(vector.data(), depth, step) };
    // SAFETY: the caller's promise; T and the type passed are the same.
    unsafe {
        match T::DTYPE {
            DType::F64 => each::<T, f64>(matrix, &vector, out, [count, pitch]),
            DType::C64 => each::<T, Complex<f32>>(matrix, &vector, out, [count, pitch]),
            DType::C128 => each::<T, Complex<f64>>(matrix, &vector, out, [count, pitch]),
            _ => each::<T, f32>(matrix, &vector, out, [count, pitch]),
        }
    }
}

/// Returns a vector as a slice, copied if its stride is not 1.
///
/// # Safety
/// `length` elements can be read at the stride for as long as the result lives.
unsafe fn run<'a, T: Number>(first: *const T, length: usize, step: isize) -> Cow<'a, [T]> {
    if step == 1 || length == 1 {
        // SAFETY: by the caller's guarantee.
        return Cow::Borrowed(unsafe { std::slice::from_raw_parts(first, length) });
    }
    // SAFETY: by the caller's guarantee, for each index below the length.
    Cow::Owned((0..length as isize).map(|index| unsafe { *first.offset(index * step) }).collect())
}

/// Multiplies each row of a matrix with the vector, as numbers of type `N`, into results that are
/// `pitch` elements apart.
///
/// # Safety
/// `count` rows as long as the vector can be read, and as many results written, which overlap with
/// neither and which no other thread accesses. T and N are the same type.
unsafe fn each<T: Number, N: Number>(
    matrix: Matrix<T>,
    vector: &[T],
    out: *mut T,
    [count, pitch]: [usize; 2],
) where
    Sum: Fold<N>,
{
    let (first, vector) = (matrix.data().cast::<N>(), bytemuck::cast_slice::<T, N>(vector));
    let (depth, out) = (vector.len(), out.cast::<N>());
    let is_by_columns = matrix.row == 1 && matrix.column > 1 && count > 1;
    // SAFETY: the caller's promise, for every row below the count, and for the memory from the
    // first to the last element of a strip.
    unsafe {
        if is_by_columns {
            let mut totals = [Sum::START_TOTAL; STRIP];
            for start in (0..count).step_by(STRIP) {
                let totals = &mut totals[..STRIP.min(count - start)];
                let length = (depth - 1) * matrix.column as usize + totals.len();
                let strip = std::slice::from_raw_parts(first.add(start), length);
                columns::sums(strip, matrix.column as usize, vector, totals);
                for (index, total) in totals.iter().enumerate() {
                    out.add((start + index) * pitch).write(Sum::finish(*total, depth));
                }
            }
            return;
        }
        let row =
            |index: usize| run(first.offset(index as isize * matrix.row), depth, matrix.column);
        let write = |index: usize, total| out.add(index * pitch).write(Sum::finish(total, depth));
        #[cfg(target_arch = "x86_64")]
        if N::DTYPE == DType::F32 && level() > InstructionSet::Base {
            let block = |x: &[N], y: &[N]| {
                // The level has AVX2; N is float32.
                let sum = floats::block(bytemuck::cast_slice(x), bytemuck::cast_slice(y));
                bytemuck::cast(sum)
            };
            for index in 0..count {
                write(index, rows::sum(&row(index), vector, block));
            }
            return;
        }
        vectorized(
            #[inline(always)]
            || {
                for index in 0..count {
                    write(index, rows::sum(&row(index), vector, rows::block));
                }
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::SharedPtr;

    /// Multiplies a matrix of `count` rows, with these strides of rows and columns, by a vector.
    fn product(count: usize, depth: usize, [row, column]: [usize; 2]) -> Vec<f32> {
        let mut memory = vec![f32::NAN; count * row.max(1) + depth * column.max(1) + count * depth];
        let number = |index: usize| ((index * 7919 + 13) % 1009) as f32 / 1009.0 - 0.5;
        for i in 0..count {
            for k in 0..depth {
                memory[i * row + k * column] = number(i * depth + k);
            }
        }
        let vector: Vec<f32> = (0..depth).map(|k| number(k * 3 + 1)).collect();
        let mut out = vec![f32::NAN; count];
        let matrix = |x: &[f32], row: usize, column: usize| Matrix {
            first: SharedPtr::new(x.as_ptr().cast_mut()),
            row: row as isize,
            column: column as isize,
        };
        let lengths = ProductLengths { rows: count, depth, columns: 1 };
        let (a, b) = (matrix(&memory, row, column), matrix(&vector, 1, 1));
        // SAFETY: the memory has every element at these strides.
        unsafe { multiply(lengths, a, b, out.as_mut_ptr(), 1) };
        let mut other = vec![f32::NAN; count];
        let lengths = ProductLengths { rows: 1, depth, columns: count };
        let (a, b) = (matrix(&vector, 1, 1), matrix(&memory, column, row));
        // SAFETY: as above; the matrix on the right is the same one, transposed.
        unsafe { multiply(lengths, a, b, other.as_mut_ptr(), 1) };
        assert_eq!(out, other, "vector times matrix, too");
        out
    }

    #[test]
    fn sums_do_not_depend_on_strides_or_blocking() {
        for count in [1, 2, 255, 256, 300] {
            for depth in [1, 63, 64, 100, 700, 4096, 4500] {
                let by_rows = product(count, depth, [depth, 1]);
                let (by_columns, apart) = ([1, count.max(2)], [2 * depth, 2]);
                assert_eq!(product(count, depth, by_columns), by_rows, "{count} x {depth}");
                assert_eq!(product(count, depth, apart), by_rows, "{count} x {depth}, strided");
            }
        }
        let long = product(3, 140_000, [140_000, 1]);
        assert_eq!(product(3, 140_000, [1, 3]), long, "several pieces");
    }
}
