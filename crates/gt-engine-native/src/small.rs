//! Products of small matrices: without packing and threads, and with a fixed order of summation.
//!
//! Copying the operands into blocks pays off for large products only. Each element is summed over
//! the depth in order, with one multiplication and one addition at a time.

use crate::element::Number;
use crate::simd::vectorized;

/// The most multiplications of a small product.
const SMALL: usize = 2048;

/// Rows that are computed together.
const ROWS: usize = 4;

/// A matrix in memory: its first element, and the strides of rows and columns.
#[derive(Clone, Copy)]
pub struct StridedMatrix<T> {
    pub first: *const T,
    pub row: isize,
    pub column: isize,
}

impl<T: Copy> StridedMatrix<T> {
    /// Returns an element.
    ///
    /// # Safety
    /// The element is within the matrix.
    #[inline(always)]
    unsafe fn at(&self, row: usize, column: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { *self.first.offset(row as isize * self.row + column as isize * self.column) }
    }
}

/// Returns whether a product is small.
pub fn is_small(rows: usize, depth: usize, columns: usize) -> bool {
    rows * depth * columns <= SMALL
}

/// Multiplies `rows x depth` by `depth x columns`, into rows that are `pitch` elements apart.
///
/// # Safety
/// The matrices have these lengths and can be read. `out` has space for the rows, which overlap
/// with neither matrix and which no other thread accesses.
pub unsafe fn multiply<T: Number>(
    [rows, depth, columns]: [usize; 3],
    a: StridedMatrix<T>,
    b: StridedMatrix<T>,
    out: *mut T,
    pitch: usize,
) {
    vectorized(
        #[inline(always)]
        || {
            let mut row = 0;
            while row < rows {
                let count = ROWS.min(rows - row);
                let a = StridedMatrix { first: a.first.wrapping_offset(row as isize * a.row), ..a };
                let out = out.wrapping_add(row * pitch);
                let mut column = 0;
                while column < columns {
                    let b = StridedMatrix {
                        first: b.first.wrapping_offset(column as isize * b.column),
                        ..b
                    };
                    let out = out.wrapping_add(column);
                    // SAFETY: the caller's promise, for a block within the result.
                    column += unsafe {
                        match columns - column {
                            16.. => block::<T, 16>(count, depth, a, b, out, pitch),
                            8.. => block::<T, 8>(count, depth, a, b, out, pitch),
                            4.. => block::<T, 4>(count, depth, a, b, out, pitch),
                            _ => block::<T, 1>(count, depth, a, b, out, pitch),
                        }
                    };
                }
                row += count;
            }
        },
    );
}

/// Computes up to [`ROWS`] rows of `WIDTH` columns; returns `WIDTH`.
///
/// # Safety
/// As for [`multiply`].
#[inline(always)]
unsafe fn block<T: Number, const WIDTH: usize>(
    rows: usize,
    depth: usize,
    a: StridedMatrix<T>,
    b: StridedMatrix<T>,
    out: *mut T,
    pitch: usize,
) -> usize {
    // SAFETY: the caller's promise; a full block has its rows unrolled.
    unsafe {
        if rows == ROWS {
            sums::<T, WIDTH, ROWS>(depth, a, b, out, pitch);
        } else {
            for row in 0..rows {
                let a = StridedMatrix { first: a.first.wrapping_offset(row as isize * a.row), ..a };
                sums::<T, WIDTH, 1>(depth, a, b, out.add(row * pitch), pitch);
            }
        }
    }
    WIDTH
}

/// Computes the sums of `COUNT` rows and `WIDTH` columns in registers.
///
/// # Safety
/// As for [`multiply`].
#[inline(always)]
unsafe fn sums<T: Number, const WIDTH: usize, const COUNT: usize>(
    depth: usize,
    a: StridedMatrix<T>,
    b: StridedMatrix<T>,
    out: *mut T,
    pitch: usize,
) {
    let mut sums = [[T::ZERO; WIDTH]; COUNT];
    for k in 0..depth {
        // SAFETY: k is within the depth, the rows and columns within the block.
        let line: [T; WIDTH] = unsafe {
            if b.column == 1 {
                b.first.offset(k as isize * b.row).cast::<[T; WIDTH]>().read()
            } else {
                std::array::from_fn(|column| b.at(k, column))
            }
        };
        for (row, sums) in sums.iter_mut().enumerate() {
            // SAFETY: as above.
            let factor = unsafe { a.at(row, k) };
            for (sum, x) in sums.iter_mut().zip(line) {
                *sum = sum.plus(factor.times(x));
            }
        }
    }
    for (row, sums) in sums.into_iter().enumerate() {
        // SAFETY: `out` has space for the block.
        unsafe { out.add(row * pitch).cast::<[T; WIDTH]>().write(sums) };
    }
}
