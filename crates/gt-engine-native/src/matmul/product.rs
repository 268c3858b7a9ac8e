//! One product on one thread: by gemm, by the loops for small ones, or exactly.

use std::mem::MaybeUninit;

use gemm::Parallelism;
use gt_ir::DType;

use super::vector::{self, is_by_vector};
use super::{Matrix, ProductLengths, TRANSPOSE_MIN};
use crate::buffer::Buffer;
use crate::element::Number;
use crate::simd::vectorized;
use crate::small;
use crate::transpose::transpose;

/// One product on this thread, into rows that are `pitch` elements apart; every element of them is
/// written.
///
/// # Safety
/// The matrices can be read in these lengths. `out` has room for such rows, which overlap with
/// neither and no other thread accesses.
pub(super) unsafe fn product<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    pitch: usize,
) {
    let ProductLengths { rows, depth, columns } = lengths;
    if !T::DTYPE.is_exact() && small::is_small(rows, depth, columns) {
        // SAFETY: the caller's promise.
        return unsafe {
            small::multiply([rows, depth, columns], a.strided(), b.strided(), out, pitch);
        };
    }
    let is_transposed = is_better_transposed(lengths, a, b);
    // SAFETY: the caller's promise.
    unsafe { large(lengths, a, b, out, pitch, is_transposed) }
}

/// As [`product`], of matrices of any size, computed column by column if it is turned.
///
/// # Safety
/// As there.
pub(super) unsafe fn large<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    pitch: usize,
    is_transposed: bool,
) {
    let ProductLengths { rows, depth, columns } = lengths;
    if is_by_vector::<T>(lengths) {
        // SAFETY: the caller's promise.
        return unsafe { vector::multiply(lengths, a, b, out, pitch) };
    }
    if !T::DTYPE.is_exact() && depth > 0 {
        if is_transposed && let Ok(buffer) = Buffer::new(rows * columns * size_of::<T>()) {
            let transposed = buffer.data().cast::<T>();
            // SAFETY: the caller's promise; the buffer is new and has room for the result, column
            // by column.
            return unsafe {
                multiply(lengths, a, b, transposed, [1, rows as isize]);
                transpose(rows, columns, transposed, rows as isize, out, pitch as isize);
            };
        }
        // SAFETY: the caller's promise; T is no integer.
        return unsafe { multiply(lengths, a, b, out, [pitch as isize, 1]) };
    }
    for row in 0..rows {
        // SAFETY: the caller's promise, for one of the rows.
        unsafe {
            let out = std::slice::from_raw_parts_mut(out.add(row * pitch).cast(), columns);
            exact_row(lengths, a.from(row, 0), b, out);
        }
    }
}

/// Whether gemm is faster at the result column by column. Row by row it copies a right operand
/// whose columns are runs (a transposed weight) into rows, and a left one slowly; that costs more
/// than to turn a small result.
pub(super) fn is_better_transposed<T>(lengths: ProductLengths, a: Matrix<T>, b: Matrix<T>) -> bool {
    let ProductLengths { rows, depth, columns } = lengths;
    if is_left_transposed(lengths, a) {
        return true;
    }
    b.row == 1 && b.column != 1 && rows > 1 && rows * (columns + depth) < depth * columns
}

/// Whether the left operand's columns are runs, and the result is the smaller one to turn.
fn is_left_transposed<T>(lengths: ProductLengths, a: Matrix<T>) -> bool {
    let ProductLengths { rows, depth, columns } = lengths;
    a.row == 1 && a.column != 1 && rows > 1 && (TRANSPOSE_MIN..depth).contains(&columns)
}

/// One product of floats or complex numbers, its result at the steps given for rows and columns.
///
/// # Safety
/// The matrices can be read in these lengths. `out` has room for the result at those steps, which
/// overlaps with neither and no other thread accesses. T is no integer.
unsafe fn multiply<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    steps: [isize; 2],
) {
    // SAFETY: the caller's promise. A complex number of ours is laid out as one of gemm's.
    unsafe {
        match T::DTYPE {
            DType::C64 => multiply_as([gemm::c32::ZERO, gemm::c32::ONE], lengths, a, b, out, steps),
            DType::C128 => {
                multiply_as([gemm::c64::ZERO, gemm::c64::ONE], lengths, a, b, out, steps)
            }
            _ => multiply_as([T::ZERO, T::ONE], lengths, a, b, out, steps),
        }
    }
}

/// As [`multiply`], with the numbers as gemm's `G`, of which 0 and 1 are given.
///
/// # Safety
/// As there; besides, T is laid out as G.
unsafe fn multiply_as<G: Copy + 'static, T: Number>(
    [zero, one]: [G; 2],
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    [row, column]: [isize; 2],
) {
    // SAFETY: the caller's promise. The output is not read, so that it need not be initialized.
    unsafe {
        gemm::gemm(
            lengths.rows,
            lengths.columns,
            lengths.depth,
            out.cast::<G>(),
            column,
            row,
            false,
            a.data().cast::<G>(),
            a.column,
            a.row,
            b.data().cast::<G>(),
            b.column,
            b.row,
            zero,
            one,
            // The output is not read, so that it need not be conjugated. But gemm then has one way to
            // sum complex numbers, whatever the strides.
            true,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// A row of an integer product, which wraps.
///
/// # Safety
/// A row of `a`, as long as the depth, can be read, and of `b` as many rows as long as `out`.
unsafe fn exact_row<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: &mut [MaybeUninit<T>],
) {
    out.fill(MaybeUninit::new(T::ZERO));
    // SAFETY: filled a line ago.
    let out = unsafe { &mut *(std::ptr::from_mut(out) as *mut [T]) };
    vectorized(
        #[inline(always)]
        || {
            for k in 0..lengths.depth {
                // SAFETY: k is within the depth, and each column within the output's length.
                unsafe {
                    let factor = *a.from(0, k).data();
                    let row = b.from(k, 0);
                    if row.column == 1 {
                        let row = std::slice::from_raw_parts(row.data(), out.len());
                        for (out, x) in out.iter_mut().zip(row) {
                            *out = out.plus(factor.times(*x));
                        }
                    } else {
                        for (column, out) in out.iter_mut().enumerate() {
                            *out = out.plus(factor.times(*row.from(0, column).data()));
                        }
                    }
                }
            }
        },
    );
}
