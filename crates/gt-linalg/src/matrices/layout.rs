//! Conversions between row-major and column-major matrices, and operations on columns.

use std::cmp::Ordering;

use faer::MatMut;
use faer::traits::ext::ComplexFieldExt;
use gt_simd::vectorized;

use super::scalar::{MatrixScalar, Real};

/// The rows and columns of a block that is transposed together, so that its cache lines stay in the
/// cache.
const SQUARE: usize = 16;

/// Transposes a row-major matrix of `rows` rows, which converts it to column-major.
///
/// # Panics
/// A slice does not have the length of the matrix.
pub fn transpose<T: Copy>(from: &[T], rows: usize, columns: usize, to: &mut [T]) {
    transpose_with(from, rows, columns, to, |x| x);
}

/// As [`transpose`], with a function applied to each element.
pub fn transpose_with<T: Copy>(
    from: &[T],
    rows: usize,
    columns: usize,
    to: &mut [T],
    of: impl Fn(T) -> T,
) {
    assert!(from.len() == rows * columns && to.len() == from.len(), "the lengths of a matrix");
    for top in (0..rows).step_by(SQUARE) {
        let bottom = rows.min(top + SQUARE);
        for left in (0..columns).step_by(SQUARE) {
            for column in left..columns.min(left + SQUARE) {
                let to = &mut to[column * rows..][top..bottom];
                for (to, row) in to.iter_mut().zip(top..bottom) {
                    *to = of(from[row * columns + column]);
                }
            }
        }
    }
}

/// Returns a row-major matrix in column-major order.
pub fn columns_of<T: MatrixScalar>(rows_first: &[T], rows: usize, columns: usize) -> Vec<T> {
    let mut out = vec![T::zero(); rows_first.len()];
    transpose(rows_first, rows, columns, &mut out);
    out
}

/// Writes the identity matrix, or its first columns.
pub fn identity<T: MatrixScalar>(out: &mut [T], columns: usize) {
    out.fill(T::zero());
    out.iter_mut().step_by(columns + 1).take(columns).for_each(|x| *x = T::one());
}

/// Returns a column of a column-major matrix as a slice.
pub fn column_of<T: MatrixScalar>(a: MatMut<'_, T>, column: usize) -> &mut [T] {
    a.col_mut(column).try_as_col_major_mut().expect("columns are contiguous").as_slice_mut()
}

pub fn scale<T: MatrixScalar>(x: &mut [T], factor: T) {
    vectorized(
        #[inline(always)]
        || x.iter_mut().for_each(|x| *x *= factor),
    );
}

/// Subtracts a multiple of a column from another.
pub fn subtract<T: MatrixScalar>(from: &mut [T], column: &[T], factor: T) {
    vectorized(
        #[inline(always)]
        || {
            for (from, x) in from.iter_mut().zip(column) {
                *from -= *x * factor;
            }
        },
    );
}

/// Returns the indices that sort the values in ascending order; `None` if they are sorted. faer
/// leaves some values that are almost zero behind larger ones.
pub fn order<R: Real>(values: &[R]) -> Option<Vec<usize>> {
    if values.is_sorted() {
        return None;
    }
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&x, &y| values[x].partial_cmp(&values[y]).unwrap_or(Ordering::Equal));
    Some(order)
}

/// Permutes columns, or values as columns of length 1, into this order; columns beyond it are
/// unchanged.
pub fn reorder<T: Copy>(columns: &mut [T], length: usize, order: &[usize]) {
    let before = columns.to_vec();
    for (to, &from) in columns.chunks_exact_mut(length).zip(order) {
        to.copy_from_slice(&before[from * length..][..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_follow_the_order_of_values() {
        assert_eq!(order(&[1.0, 1.0, 2.0]), None);
        let found = order(&[3.0f32, 1.0, 2.0]).expect("the values are not sorted");
        let mut columns = [0, 1, 2, 3, 4, 5, 6, 7];
        reorder(&mut columns, 2, &found);
        assert_eq!(columns, [2, 3, 4, 5, 0, 1, 6, 7]);
    }
}
