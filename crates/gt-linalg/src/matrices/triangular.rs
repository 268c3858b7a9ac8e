//! Solutions of triangular systems.

use faer::linalg::triangular_solve::{
    solve_lower_triangular_in_place_with_conj, solve_unit_lower_triangular_in_place_with_conj,
    solve_unit_upper_triangular_in_place_with_conj, solve_upper_triangular_in_place_with_conj,
};
use faer::{Conj, MatMut, MatRef, Par};

use super::layout::{columns_of, transpose};
use super::scalar::MatrixScalar;

/// Which part of a square matrix is used, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Triangle {
    /// Whether the upper triangle is used instead of the lower one.
    pub upper: bool,
    /// Whether the diagonal is taken as ones and not read.
    pub unit: bool,
    /// Whether the transpose of the triangle is used.
    pub transposed: bool,
    /// Whether the conjugate of each element is used.
    pub conjugated: bool,
}

/// Replaces `b`, of these rows and columns, by the solution x of a x = b if `left`, else of x a =
/// b. The triangle `a` has as many rows as `b` if `left`, else as many as `b` has columns. A zero
/// on the diagonal yields elements that are infinite or NaN, as in PyTorch.
pub fn solve_triangular<T: MatrixScalar>(
    a: &[T],
    triangle: Triangle,
    b: &mut [T],
    rows: usize,
    columns: usize,
    left: bool,
) {
    let n = if left { rows } else { columns };
    assert!(a.len() == n * n && b.len() == rows * columns, "the lengths of the matrices");
    if b.is_empty() {
        return;
    }
    let matrix = MatRef::from_row_major_slice(a, n, n);
    // x a = b is a^T x^T = b^T; the rows of b are the columns of b^T.
    let transposed = triangle.transposed == left;
    let matrix = if transposed { matrix.transpose() } else { matrix };
    let upper = triangle.upper != transposed;
    let conjugate = if triangle.conjugated { Conj::Yes } else { Conj::No };
    let solve = match (upper, triangle.unit) {
        (false, false) => solve_lower_triangular_in_place_with_conj::<T, usize, usize>,
        (false, true) => solve_unit_lower_triangular_in_place_with_conj,
        (true, false) => solve_upper_triangular_in_place_with_conj,
        (true, true) => solve_unit_upper_triangular_in_place_with_conj,
    };
    if !left {
        let right = MatMut::from_column_major_slice_mut(b, n, rows);
        return solve(matrix, conjugate, right, Par::Seq);
    }
    let mut by_columns = columns_of(b, rows, columns);
    let right = MatMut::from_column_major_slice_mut(&mut by_columns, n, columns);
    solve(matrix, conjugate, right, Par::Seq);
    transpose(&by_columns, columns, rows, b);
}

#[cfg(test)]
mod tests {
    use faer::traits::ext::ComplexFieldExt;
    use num_complex::Complex;

    use super::*;
    use crate::matrices::check::{SampleMatrix, assert_near, product, random, transpose};

    /// Returns the matrix that the triangle represents.
    fn whole<T: SampleMatrix>(a: &[T], n: usize, triangle: Triangle) -> Vec<T> {
        let mut out = a.to_vec();
        for row in 0..n {
            for column in 0..n {
                let x = &mut out[row * n + column];
                if row == column && triangle.unit {
                    *x = T::one();
                } else if (row < column && !triangle.upper) || (row > column && triangle.upper) {
                    *x = T::zero();
                }
                if triangle.conjugated {
                    *x = x.conj();
                }
            }
        }
        if triangle.transposed { transpose(&out, n, n) } else { out }
    }

    fn check<T: SampleMatrix>(rows: usize, columns: usize) {
        for bits in 0..32 {
            let bit = |k: u32| bits >> k & 1 == 1;
            let (upper, unit, transposed, conjugated) = (bit(0), bit(1), bit(2), bit(3));
            let triangle = Triangle { upper, unit, transposed, conjugated };
            let left = bit(4);
            let n = if left { rows } else { columns };
            // Small compared with the diagonal, so that solutions do not grow.
            let mut a: Vec<T> =
                random::<T>(n, n, 8).into_iter().map(|x| x * T::sample(0.1, 0.0)).collect();
            (0..n).for_each(|k| a[k * n + k] += T::one());
            let b = random::<T>(rows, columns, 9);
            let mut x = b.clone();
            solve_triangular(&a, triangle, &mut x, rows, columns, left);
            let a = whole(&a, n, triangle);
            let back = match left {
                true => product(&a, &x, rows, n, columns),
                false => product(&x, &a, rows, n, columns),
            };
            let size = x.iter().map(|x| x.size()).fold(1.0, f64::max) as usize;
            assert_near(&back, &b, n * (1 + size));
        }
    }

    #[test]
    fn the_triangle_times_the_solution_is_the_right_side() {
        for (rows, columns) in [(0, 3), (3, 0), (1, 1), (2, 5), (7, 3), (40, 30), (33, 1), (1, 33)]
        {
            check::<f32>(rows, columns);
            check::<f64>(rows, columns);
            check::<Complex<f32>>(rows, columns);
            check::<Complex<f64>>(rows, columns);
        }
    }

    #[test]
    fn a_zero_on_the_diagonal_divides() {
        let mut b = [1.0f32, 2.0];
        solve_triangular(&[0.0, 0.0, 1.0, 1.0], Triangle::default(), &mut b, 2, 1, true);
        assert!(b.iter().all(|x| !x.is_finite()));
    }
}
