//! The LDL factorization of symmetric and Hermitian matrices that may be indefinite.

use faer::traits::ext::ComplexFieldExt;
use faer::traits::math_utils::from_f64;

use super::layout::{columns_of, scale, subtract, transpose};
use super::scalar::{MatrixScalar, of_real};

/// Replaces a matrix of `n` rows by its factors, a = L D L^T, or L D L^H if `hermitian`, by the
/// method of Bunch and Kaufman. D has blocks of one or two rows; L is a product of exchanges and
/// columns, with ones on its diagonal. Only the lower triangle is read. It is replaced by D and the
/// part of L below D's blocks; the part above the diagonal becomes zeros.
///
/// If `pivots[k]` is positive, D has a block of one row, and row k was exchanged with that row,
/// counted from 1. Two equal negative pivots are a block of two rows, the second of which was
/// exchanged with the row that is their absolute value. As LAPACK's sytrf or hetrf.
///
/// Returns LAPACK's info: 0, or the number, from 1, of the first block of D that is zero.
pub fn ldl<T: MatrixScalar>(a: &mut [T], n: usize, hermitian: bool, pivots: &mut [i32]) -> usize {
    assert!(a.len() == n * n && pivots.len() == n, "a square matrix and a pivot for each row");
    if n == 0 {
        return 0;
    }
    let mut columns = columns_of(a, n, n);
    let hermitian = hermitian && !T::IS_REAL;
    let mut matrix = Lower { columns: &mut columns, n, hermitian };
    let (mut k, mut info) = (0, 0);
    while k < n {
        let (pivot, width) = matrix.pivot(k);
        let Some(pivot) = pivot else {
            info = if info == 0 { k + 1 } else { info };
            pivots[k] = k as i32 + 1;
            matrix.make_real(k);
            k += 1;
            continue;
        };
        matrix.exchange(k, k + width - 1, pivot);
        let number = pivot as i32 + 1;
        if width == 1 {
            pivots[k] = number;
            matrix.eliminate_one(k);
        } else {
            pivots[k..k + 2].fill(-number);
            matrix.eliminate_two(k);
        }
        k += width;
    }
    for (column, values) in columns.chunks_exact_mut(n).enumerate() {
        values[..column].fill(T::zero());
    }
    transpose(&columns, n, n, a);
    info
}

/// The lower triangle of a square column-major matrix.
struct Lower<'a, T> {
    columns: &'a mut [T],
    n: usize,
    hermitian: bool,
}

impl<T: MatrixScalar> Lower<'_, T> {
    fn at(&self, row: usize, column: usize) -> T {
        self.columns[column * self.n + row]
    }

    fn set(&mut self, row: usize, column: usize, x: T) {
        self.columns[column * self.n + row] = x;
    }

    /// Returns the conjugate if the matrix is Hermitian, else the number itself.
    fn conjugate_if_hermitian(&self, x: T) -> T {
        if self.hermitian { x.conj() } else { x }
    }

    fn diagonal_size(&self, k: usize) -> T::Real {
        let x = self.at(k, k);
        if self.hermitian { x.real().abs() } else { x.abs1() }
    }

    /// Clears the imaginary part of a diagonal element if the matrix is Hermitian.
    fn make_real(&mut self, k: usize) {
        if self.hermitian {
            self.set(k, k, of_real(self.at(k, k).real()));
        }
    }

    /// Returns the row to eliminate next, `None` if the whole column is zero, and the size of its
    /// block.
    fn pivot(&self, k: usize) -> (Option<usize>, usize) {
        let zero = T::Real::zero();
        let alpha = from_f64::<T::Real>((1.0 + 17f64.sqrt()) / 8.0);
        let largest = |cells: &mut dyn Iterator<Item = (usize, usize)>| {
            let (mut at, mut most) = (k, zero);
            for (row, column) in cells {
                let size = self.at(row, column).abs1();
                if size > most {
                    (at, most) = (row, size);
                }
            }
            (at, most)
        };
        let own = self.diagonal_size(k);
        let (row, in_column) = largest(&mut (k + 1..self.n).map(|row| (row, k)));
        if own.is_nan() || (own == zero && in_column == zero) {
            return (None, 1);
        }
        if own >= alpha * in_column {
            return (Some(k), 1);
        }
        let (_, left) = largest(&mut (k..row).map(|column| (row, column)));
        let (_, below) = largest(&mut (row + 1..self.n).map(|below| (below, row)));
        let in_row = if below > left { below } else { left };
        if own >= alpha * in_column * (in_column / in_row) {
            (Some(k), 1)
        } else if self.diagonal_size(row) >= alpha * in_row {
            (Some(row), 1)
        } else {
            (Some(row), 2)
        }
    }

    /// Exchanges rows and columns `first` and `second` in the triangle from column `k` on.
    fn exchange(&mut self, k: usize, first: usize, second: usize) {
        let n = self.n;
        if first == second {
            (k..=first).for_each(|row| self.make_real(row));
            return;
        }
        let (left, right) = self.columns.split_at_mut(second * n);
        left[first * n..][second + 1..n].swap_with_slice(&mut right[second + 1..n]);
        for between in first + 1..second {
            let (x, y) = (self.at(between, first), self.at(second, between));
            self.set(between, first, self.conjugate_if_hermitian(y));
            self.set(second, between, self.conjugate_if_hermitian(x));
        }
        self.set(second, first, self.conjugate_if_hermitian(self.at(second, first)));
        let (x, y) = (self.at(first, first), self.at(second, second));
        self.set(first, first, y);
        self.set(second, second, x);
        for row in [k, first, second] {
            self.make_real(row);
        }
        if first > k {
            let (x, y) = (self.at(first, k), self.at(second, k));
            self.set(first, k, y);
            self.set(second, k, x);
        }
    }

    fn eliminate_one(&mut self, k: usize) {
        let (n, inverse) = (self.n, self.at(k, k).recip());
        let (left, right) = self.columns.split_at_mut((k + 1) * n);
        let pivot = &mut left[k * n..];
        for (column, values) in right.chunks_exact_mut(n).enumerate() {
            let row = k + 1 + column;
            let own = if self.hermitian { pivot[row].conj() } else { pivot[row] };
            subtract(&mut values[row..], &pivot[row..], own * inverse);
        }
        scale(&mut pivot[k + 1..n], inverse);
        (k + 1..n).for_each(|row| self.make_real(row));
    }

    fn eliminate_two(&mut self, k: usize) {
        let n = self.n;
        // The inverse of the block, computed from its elements divided by the off-diagonal one, or
        // by its absolute value.
        let off = self.at(k + 1, k);
        let unit = if self.hermitian { of_real(off.abs()) } else { off };
        let (off, last, first) = (off / unit, self.at(k + 1, k + 1) / unit, self.at(k, k) / unit);
        let factor = (last * first - T::one()).recip() / unit;
        for column in k + 2..n {
            let (x, y) = (self.at(column, k), self.at(column, k + 1));
            let x_factor = factor * (last * x - off * y);
            let y_factor = factor * (first * y - self.conjugate_if_hermitian(off) * x);
            let (left, right) = self.columns.split_at_mut((k + 2) * n);
            let (pivot, values) = (&left[k * n..], &mut right[(column - k - 2) * n..][column..n]);
            let conjugate = |x: T| if self.hermitian { x.conj() } else { x };
            subtract(values, &pivot[column..n], conjugate(x_factor));
            subtract(values, &pivot[n + column..], conjugate(y_factor));
            self.set(column, k, x_factor);
            self.set(column, k + 1, y_factor);
            self.make_real(column);
        }
    }
}

#[cfg(test)]
#[path = "ldl_tests.rs"]
mod tests;
