//! The LU factorization with partial pivoting.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve::solve_unit_lower_triangular_in_place;
use faer::traits::ext::ComplexFieldExt;
use faer::traits::math_utils::min_positive;
use faer::{Accum, MatMut, Par};

use super::layout::{column_of, columns_of, scale, subtract, transpose};
use super::scalar::MatrixScalar;

/// Matrices of at most this many rows or columns are factored column by column.
const NARROW: usize = 8;

/// Replaces a matrix by its factors: a = P L U. U is in the upper triangle, and L, without its
/// diagonal of ones, below it. Row k was exchanged with row `pivots[k]`, counted from 1, in order
/// of k; there are as many pivots as rows or columns, whichever are fewer.
///
/// Returns LAPACK's info: 0, or the number, from 1, of the first zero on U's diagonal; the factors
/// are valid then, too.
pub fn lu<T: MatrixScalar>(a: &mut [T], rows: usize, columns: usize, pivots: &mut [i32]) -> usize {
    assert!(a.len() == rows * columns, "the lengths of a matrix");
    assert!(pivots.len() == rows.min(columns), "a pivot for each row or column");
    if a.is_empty() {
        return 0;
    }
    let mut by_columns = columns_of(a, rows, columns);
    factor(MatMut::from_column_major_slice_mut(&mut by_columns, rows, columns), pivots);
    transpose(&by_columns, columns, rows, a);
    pivots.iter_mut().for_each(|pivot| *pivot += 1);
    let zero = |&k: &usize| a[k * columns + k] == T::zero();
    (0..pivots.len()).find(zero).map_or(0, |k| k + 1)
}

/// Factors a column-major matrix recursively; the pivots count from 0.
fn factor<T: MatrixScalar>(mut a: MatMut<'_, T>, pivots: &mut [i32]) {
    let least = pivots.len();
    if least <= NARROW {
        return factor_narrow(a, pivots);
    }
    let half = (least / 2).next_multiple_of(NARROW);
    let (left_pivots, right_pivots) = pivots.split_at_mut(half);
    factor(a.as_mut().subcols_mut(0, half), left_pivots);
    let (mut left, mut right) = a.split_at_col_mut(half);
    exchange(right.as_mut(), left_pivots);
    let (top_left, bottom_left) = left.as_ref().split_at_row(half);
    let (mut top, mut bottom) = right.split_at_row_mut(half);
    solve_unit_lower_triangular_in_place(top_left, top.as_mut(), Par::Seq);
    let minus = -T::one();
    matmul(bottom.as_mut(), Accum::Add, bottom_left, top.as_ref(), minus, Par::Seq);
    factor(bottom, right_pivots);
    let rows = left.nrows();
    exchange(left.as_mut().subrows_mut(half, rows - half), right_pivots);
    right_pivots.iter_mut().for_each(|pivot| *pivot += half as i32);
}

/// Exchanges row k with row `pivots[k]`, in order of k, in all columns.
fn exchange<T: MatrixScalar>(mut a: MatMut<'_, T>, pivots: &[i32]) {
    for column in 0..a.ncols() {
        let column = column_of(a.as_mut(), column);
        for (row, &pivot) in pivots.iter().enumerate() {
            column.swap(row, pivot as usize);
        }
    }
}

fn factor_narrow<T: MatrixScalar>(mut a: MatMut<'_, T>, pivots: &mut [i32]) {
    for (k, chosen) in pivots.iter_mut().enumerate() {
        let pivot = k + largest(&column_of(a.as_mut(), k)[k..]);
        *chosen = pivot as i32;
        if pivot != k {
            for column in 0..a.ncols() {
                column_of(a.as_mut(), column).swap(k, pivot);
            }
        }
        let (mut left, mut right) = a.as_mut().split_at_col_mut(k + 1);
        let (at, below) = column_of(left.as_mut(), k)[k..].split_first_mut().expect("a pivot");
        if *at == T::zero() {
            continue;
        }
        divide(below, *at);
        for column in 0..right.ncols() {
            let column = &mut column_of(right.as_mut(), column)[k..];
            let (factor, column) = column.split_first_mut().expect("the pivot's row");
            subtract(column, below, *factor);
        }
    }
}

/// Returns the index of the first number with the largest sum of its parts' absolute values.
fn largest<T: MatrixScalar>(x: &[T]) -> usize {
    let (mut at, mut most) = (0, x[0].abs1());
    for (index, x) in x.iter().enumerate().skip(1) {
        let size = x.abs1();
        if size > most {
            (at, most) = (index, size);
        }
    }
    at
}

/// Divides by the pivot, by multiplying with its reciprocal if that is finite.
fn divide<T: MatrixScalar>(x: &mut [T], pivot: T) {
    if pivot.abs() >= min_positive() {
        scale(x, pivot.recip());
    } else {
        x.iter_mut().for_each(|x| *x /= pivot);
    }
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;
    use crate::matrices::check::{SampleMatrix, assert_near, of_rank, product, random};

    /// Returns the product of the factors, with the row exchanges undone.
    fn rebuilt<T: SampleMatrix>(
        packed: &[T],
        rows: usize,
        columns: usize,
        pivots: &[i32],
    ) -> Vec<T> {
        let k = pivots.len();
        let (mut lower, mut upper) = (vec![T::zero(); rows * k], vec![T::zero(); k * columns]);
        for row in 0..rows {
            for column in 0..columns {
                let x = packed[row * columns + column];
                if row > column {
                    lower[row * k + column] = x;
                } else {
                    upper[row * columns + column] = x;
                }
            }
            if row < k {
                lower[row * k + row] = T::one();
            }
        }
        assert!(lower.iter().all(|x| x.size() <= 1.5), "no factor is above 1, by its largest part");
        let mut out = product(&lower, &upper, rows, k, columns);
        for (row, &pivot) in pivots.iter().enumerate().rev() {
            let pivot = pivot as usize - 1;
            (0..columns).for_each(|j| out.swap(row * columns + j, pivot * columns + j));
        }
        out
    }

    fn check<T: SampleMatrix>(a: Vec<T>, rows: usize, columns: usize) {
        let (mut packed, mut pivots) = (a.clone(), vec![0; rows.min(columns)]);
        lu(&mut packed, rows, columns, &mut pivots);
        assert_near(&rebuilt(&packed, rows, columns, &pivots), &a, rows.min(columns));
    }

    fn check_all<T: SampleMatrix>() {
        for rows in [0, 1, 2, 5, 8, 9, 33, 100] {
            for columns in [0, 1, 3, 8, 17, 100] {
                check::<T>(random(rows, columns, 1), rows, columns);
                check::<T>(of_rank(rows, columns, 2), rows, columns);
            }
        }
    }

    #[test]
    fn factors_multiply_to_the_matrix() {
        check_all::<f32>();
        check_all::<f64>();
        check_all::<Complex<f32>>();
        check_all::<Complex<f64>>();
    }

    #[test]
    fn zero_pivots_are_reported_and_leave_the_rest_finite() {
        for n in [1, 3, 20, 64] {
            let mut a = random::<f64>(n, n, 2);
            let zero = n / 2;
            (0..n).for_each(|row| a[row * n + zero] = 0.0);
            let (mut packed, mut pivots) = (a.clone(), vec![0; n]);
            assert_eq!(lu(&mut packed, n, n, &mut pivots), zero + 1);
            assert_near(&rebuilt(&packed, n, n, &pivots), &a, n);
        }
        let (mut zeros, mut pivots) = ([0f32; 6], [0; 2]);
        assert_eq!(lu(&mut zeros, 3, 2, &mut pivots), 1);
        assert!(zeros == [0.0; 6] && pivots == [1, 2]);
    }

    #[test]
    fn packed_as_lapack_does() {
        let (mut a, mut pivots) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0], [0; 3]);
        assert_eq!(lu(&mut a, 3, 3, &mut pivots), 0);
        assert_eq!(pivots, [3, 3, 3]);
        let expected = [7.0, 8.0, 10.0, 1.0 / 7.0, 6.0 / 7.0, 11.0 / 7.0, 4.0 / 7.0, 0.5, -0.5];
        assert_near(&a, &expected, 3);
    }
}
