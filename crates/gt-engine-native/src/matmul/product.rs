//! One product on one thread: by gemm, by the loops for small matrices, or exactly for integers.

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

/// The longest part of the depth: gemm copies that much of both operands at a time, too.
pub(super) const DEPTH: usize = 512;

/// Computes one product on this thread, into rows that are `pitch` elements apart; writes every
/// element. Calls `between` where it can be paused: between two parts of the depth
/// ([`depth_step`]), or two rows of an integer product.
///
/// # Safety
/// The matrices have these lengths and can be read. `out` has space for the rows, which overlap
/// with neither matrix and which no other thread accesses.
pub(super) unsafe fn product<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    pitch: usize,
    between: &dyn Fn(),
) {
    let ProductLengths { rows, depth, columns } = lengths;
    if !T::DTYPE.is_exact() && small::is_small(rows, depth, columns) {
        // SAFETY: by the caller's guarantee.
        return unsafe {
            small::multiply([rows, depth, columns], a.strided(), b.strided(), out, pitch);
        };
    }
    let is_transposed = is_better_transposed(lengths, a, b);
    // SAFETY: by the caller's guarantee.
    unsafe { large(lengths, a, b, out, pitch, is_transposed, between) }
}

/// As [`product`], for matrices of any size; computes the transposed result first if
/// `is_transposed`.
///
/// # Safety
/// As for [`product`].
pub(super) unsafe fn large<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    pitch: usize,
    is_transposed: bool,
    between: &dyn Fn(),
) {
    let ProductLengths { rows, depth, columns } = lengths;
    if is_by_vector::<T>(lengths) {
        // SAFETY: by the caller's guarantee.
        return unsafe { vector::multiply(lengths, a, b, out, pitch) };
    }
    if !T::DTYPE.is_exact() && depth > 0 {
        if is_transposed && let Ok(buffer) = Buffer::new(rows * columns * size_of::<T>()) {
            let transposed = buffer.data().cast::<T>();
            // SAFETY: the caller's promise; the buffer is new and has space for the transposed
            // result.
            return unsafe {
                multiply(lengths, a, b, transposed, [1, rows as isize], between);
                transpose(rows, columns, transposed, rows as isize, out, pitch as isize);
            };
        }
        // SAFETY: the caller's promise; T is not an integer.
        return unsafe { multiply(lengths, a, b, out, [pitch as isize, 1], between) };
    }
    for row in 0..rows {
        if row > 0 {
            between();
        }
        // SAFETY: the caller's promise, for one row.
        unsafe {
            let out = std::slice::from_raw_parts_mut(out.add(row * pitch).cast(), columns);
            exact_row(lengths, a.from(row, 0), b, out);
        }
    }
}

/// Returns whether computing the transposed result is faster. Otherwise gemm packs a right operand
/// that is contiguous along columns (a transposed weight), and a left one slowly; that costs more
/// than transposing a small result.
pub(super) fn is_better_transposed<T>(lengths: ProductLengths, a: Matrix<T>, b: Matrix<T>) -> bool {
    let ProductLengths { rows, depth, columns } = lengths;
    if is_left_transposed(lengths, a) {
        return true;
    }
    b.row == 1 && b.column != 1 && rows > 1 && rows * (columns + depth) < depth * columns
}

/// Returns whether the left operand is contiguous along columns and larger than the result.
fn is_left_transposed<T>(lengths: ProductLengths, a: Matrix<T>) -> bool {
    let ProductLengths { rows, depth, columns } = lengths;
    a.row == 1 && a.column != 1 && rows > 1 && (TRANSPOSE_MIN..depth).contains(&columns)
}

/// Returns the length of the parts of the depth that are multiplied one after the other, and
/// summed: a large product can be paused between them. It depends on the shapes alone, as the sums
/// do, and is the same for a part of the rows or columns ([`super::least_part`]).
pub(super) fn depth_step<T: Number>(lengths: ProductLengths) -> usize {
    let ProductLengths { rows, depth, columns } = lengths;
    let is_small = rows <= 64 && columns <= 64;
    if is_small || depth <= DEPTH || !matches!(T::DTYPE, DType::F32 | DType::F64) {
        return depth.max(1);
    }
    depth.div_ceil(depth.div_ceil(DEPTH))
}

/// Multiplies floats or complex numbers; `steps` are the strides of the result's rows and columns.
///
/// # Safety
/// The matrices have these lengths and can be read. `out` has space for the result at these
/// strides, which overlaps with neither matrix and which no other thread accesses. T is not an
/// integer.
unsafe fn multiply<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    steps: [isize; 2],
    between: &dyn Fn(),
) {
    // SAFETY: the caller's promise. A complex element has the layout of gemm's type.
    unsafe {
        match T::DTYPE {
            DType::C64 => {
                let numbers = [gemm::c32::ZERO, gemm::c32::ONE];
                multiply_as(numbers, lengths, a, b, out, steps, false);
            }
            DType::C128 => {
                let numbers = [gemm::c64::ZERO, gemm::c64::ONE];
                multiply_as(numbers, lengths, a, b, out, steps, false);
            }
            _ => {
                let step = depth_step::<T>(lengths);
                for start in (0..lengths.depth).step_by(step) {
                    let is_first = start == 0;
                    if !is_first {
                        between();
                    }
                    let part = ProductLengths { depth: step.min(lengths.depth - start), ..lengths };
                    let (a, b) = (a.from(0, start), b.from(start, 0));
                    multiply_as([T::ZERO, T::ONE], part, a, b, out, steps, !is_first);
                }
            }
        }
    }
}

/// As [`multiply`], with elements of gemm's type `G`, whose 0 and 1 are passed. The result is added
/// to what is in `out` if `adds`.
///
/// # Safety
/// As for [`multiply`], and T has the layout of G. What is added to is initialized.
unsafe fn multiply_as<G: Copy + 'static, T: Number>(
    [zero, one]: [G; 2],
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    [row, column]: [isize; 2],
    adds: bool,
) {
    // SAFETY: the caller's promise. The output is read only if it is added to.
    unsafe {
        gemm::gemm(
            lengths.rows,
            lengths.columns,
            lengths.depth,
            out.cast::<G>(),
            column,
            row,
            adds,
            a.data().cast::<G>(),
            a.column,
            a.row,
            b.data().cast::<G>(),
            b.column,
            b.row,
            if adds { one } else { zero },
            one,
            // Whether the output is conjugated if it is added to, which complex ones are not. It
            // makes gemm sum complex numbers in one order, whatever the strides.
            true,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// Computes a row of an integer product, which wraps around.
///
/// # Safety
/// A row of `a`, as long as the depth, can be read, and as many rows of `b`, as long as `out`.
unsafe fn exact_row<T: Number>(
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: &mut [MaybeUninit<T>],
) {
    out.fill(MaybeUninit::new(T::ZERO));
    // SAFETY: filled in the line above.
    let out = unsafe { &mut *(std::ptr::from_mut(out) as *mut [T]) };
    vectorized(
        #[inline(always)]
        || {
            for k in 0..lengths.depth {
                // SAFETY: k is below the depth, and each column below the output's length.
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
