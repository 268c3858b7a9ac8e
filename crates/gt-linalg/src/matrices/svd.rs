//! Singular values and vectors.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::svd::{self, ComputeSvdVectors, svd_scratch};
use faer::traits::ext::ComplexFieldExt;
use faer::{MatMut, MatRef, Par};

use super::Unsolved;
use super::layout::{identity, order, reorder, transpose_with};
use super::scalar::{MatrixScalar, Real, largest_part, safe_factor};

/// The memory for singular vectors: the columns of `u`, and the conjugated rows of `vh`.
pub struct Vectors<'a, T> {
    /// With as many rows as the matrix.
    pub u: &'a mut [T],
    /// With as many columns as the matrix.
    pub vh: &'a mut [T],
    /// Whether `u` and `vh` are square, or have only one vector for each singular value.
    pub full: bool,
}

/// Writes the singular values of a matrix, the largest first, and, if requested, its singular
/// vectors: a = u diag(values) vh. There are as many values as rows or columns, whichever are
/// fewer.
///
/// # Errors
/// An element is not finite, or the iteration does not converge.
pub fn svd<T: MatrixScalar>(
    a: &[T],
    rows: usize,
    columns: usize,
    values: &mut [T::Real],
    vectors: Option<Vectors<'_, T>>,
) -> Result<(), Unsolved> {
    let count = rows.min(columns);
    assert!(a.len() == rows * columns && values.len() == count, "the lengths of a matrix");
    let full = vectors.as_ref().is_some_and(|vectors| vectors.full);
    let (u_columns, vh_rows) = if full { (rows, columns) } else { (count, count) };
    if let Some(Vectors { u, vh, .. }) = &vectors {
        assert!(u.len() == rows * u_columns && vh.len() == vh_rows * columns, "room for vectors");
    }
    let largest = largest_part(a.iter().copied()).ok_or(Unsolved::NotFinite)?;
    if a.is_empty() {
        if let Some(Vectors { u, vh, .. }) = vectors {
            identity(u, u_columns);
            identity(vh, columns);
        }
        return Ok(());
    }
    let factor = safe_factor(largest);
    let scaled: Vec<T>;
    let a = match factor {
        None => a,
        Some(factor) => {
            scaled = a.iter().map(|x| x.mul_real(factor)).collect();
            &scaled
        }
    };
    decompose(MatRef::from_column_major_slice(a, columns, rows), values, vectors)?;
    if let Some(factor) = factor {
        values.iter_mut().for_each(|value| *value /= factor);
    }
    Ok(())
}

/// Decomposes the transpose of a matrix, as the rows of one are the columns of the other: its left
/// vectors, by columns, are the rows of `vh`, and its right vectors are the conjugates of `u`.
fn decompose<T: MatrixScalar>(
    transpose: MatRef<'_, T>,
    values: &mut [T::Real],
    vectors: Option<Vectors<'_, T>>,
) -> Result<(), Unsolved> {
    let (columns, rows) = (transpose.nrows(), transpose.ncols());
    let kind = match &vectors {
        None => ComputeSvdVectors::No,
        Some(Vectors { full: false, .. }) => ComputeSvdVectors::Thin,
        Some(Vectors { full: true, .. }) => ComputeSvdVectors::Full,
    };
    let scratch = svd_scratch::<T>(columns, rows, kind, kind, Par::Seq, Default::default());
    let mut memory = MemBuffer::new(scratch);
    let stack = MemStack::new(&mut memory);
    let mut found = vec![T::zero(); values.len()];
    let diagonal = DiagMut::from_slice_mut(&mut found);
    let (par, params) = (Par::Seq, Default::default());
    let Some(Vectors { u, vh, .. }) = vectors else {
        svd::svd(transpose, diagonal, None, None, par, stack, params)
            .map_err(|_| Unsolved::NotConverged)?;
        write(&found, values);
        if let Some(order) = descending(values) {
            reorder(values, 1, &order);
        }
        return are_numbers(values);
    };
    let (u_columns, vh_rows) = (u.len() / rows, vh.len() / columns);
    // If the matrix is long, faer expects zeros.
    vh.fill(T::zero());
    let mut right = vec![T::zero(); u.len()];
    let left_vectors = MatMut::from_column_major_slice_mut(vh, columns, vh_rows);
    let right_vectors = MatMut::from_column_major_slice_mut(&mut right, rows, u_columns);
    svd::svd(transpose, diagonal, Some(left_vectors), Some(right_vectors), par, stack, params)
        .map_err(|_| Unsolved::NotConverged)?;
    write(&found, values);
    if let Some(order) = descending(values) {
        reorder(values, 1, &order);
        reorder(vh, columns, &order);
        reorder(&mut right, rows, &order);
    }
    transpose_with(&right, u_columns, rows, u, |x| x.conj());
    are_numbers(values)
}

fn write<T: MatrixScalar>(found: &[T], values: &mut [T::Real]) {
    for (value, found) in values.iter_mut().zip(found) {
        *value = found.real();
    }
}

/// Returns the indices that sort the values in descending order; `None` if they are sorted.
fn descending<R: Real>(values: &[R]) -> Option<Vec<usize>> {
    let negative: Vec<R> = values.iter().map(|value| -*value).collect();
    order(&negative)
}

/// Fails if a value is not finite, as an iteration has then diverged.
pub fn are_numbers<R: Real>(values: &[R]) -> Result<(), Unsolved> {
    if values.iter().all(|value| value.is_finite()) { Ok(()) } else { Err(Unsolved::NotConverged) }
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;
    use crate::matrices::check::{
        SampleMatrix, adjoint, assert_near, assert_orthonormal, of_rank, product, random,
    };
    use crate::matrices::scalar::of_real;

    fn check<T: SampleMatrix>(a: &[T], rows: usize, columns: usize) -> Vec<T::Real> {
        let count = rows.min(columns);
        let mut alone = vec![T::Real::zero(); count];
        svd(a, rows, columns, &mut alone, None).expect("singular values");
        for full in [false, true] {
            let (m, n) = if full { (rows, columns) } else { (count, count) };
            let (mut u, mut vh) = (vec![T::nan(); rows * m], vec![T::nan(); n * columns]);
            let mut values = vec![T::Real::zero(); count];
            let vectors = Vectors { u: &mut u, vh: &mut vh, full };
            svd(a, rows, columns, &mut values, Some(vectors)).expect("singular vectors");
            assert!(values.windows(2).all(|pair| pair[0] >= pair[1]), "descending");
            assert!(values.iter().all(|value| *value >= T::Real::zero()));
            let as_numbers = |x: &[T::Real]| x.iter().map(|x| of_real::<T>(*x)).collect::<Vec<_>>();
            assert_near(&as_numbers(&alone), &as_numbers(&values), 4 * rows.max(columns));
            assert_orthonormal(&u, rows, m);
            assert_orthonormal(&adjoint(&vh, n, columns), columns, n);
            let mut scaled = vec![T::zero(); rows * n];
            for row in 0..rows {
                for k in 0..count {
                    scaled[row * n + k] = u[row * m + k].mul_real(values[k]);
                }
            }
            assert_near(&product(&scaled, &vh, rows, n, columns), a, 4 * rows.max(columns));
        }
        alone
    }

    fn check_all<T: SampleMatrix>() {
        for rows in [0, 1, 2, 5, 40, 140] {
            for columns in [0, 1, 3, 40, 130] {
                check::<T>(&random(rows, columns, 1), rows, columns);
                check::<T>(&of_rank(rows, columns, 3), rows, columns);
            }
        }
        let n = 130;
        check::<T>(&crate::matrices::check::identity(n), n, n);
        check::<T>(&vec![T::zero(); n * n], n, n);
        check::<T>(&vec![T::one(); n * n], n, n);
        // Values over many orders of magnitude, and pairs of equal values.
        let graded =
            |k: usize| if k.is_multiple_of(n + 1) { 0.7f64.powi(k as i32 / n as i32) } else { 0.0 };
        check::<T>(&(0..n * n).map(|k| T::sample(graded(k), 0.0)).collect::<Vec<_>>(), n, n);
        let pairs = |k: usize| if k.is_multiple_of(n + 1) { (k / n / 2) as f64 } else { 0.0 };
        check::<T>(&(0..n * n).map(|k| T::sample(pairs(k), 0.0)).collect::<Vec<_>>(), n, n);
    }

    #[test]
    fn vectors_and_values_multiply_to_the_matrix() {
        check_all::<f32>();
        check_all::<f64>();
        check_all::<Complex<f32>>();
        check_all::<Complex<f64>>();
    }

    #[test]
    fn tiny_and_huge_matrices_are_decomposed() {
        for factor in [1e-38f32, 1e-42, 1e30, 3e37] {
            let a: Vec<f32> = random::<f32>(20, 12, 1).into_iter().map(|x| x * factor).collect();
            let mut values = [0.0; 12];
            svd(&a, 20, 12, &mut values, None).expect("singular values");
            let mut expected = [0.0; 12];
            svd(&random::<f32>(20, 12, 1), 20, 12, &mut expected, None)
                .expect("the matrix has a decomposition");
            for (value, expected) in values.iter().zip(expected) {
                assert!((value / factor - expected).abs() < 0.01, "{value:e} of {factor:e}");
            }
        }
    }

    #[test]
    fn non_finite_elements_are_errors() {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = random::<f64>(4, 3, 1);
            a[5] = bad;
            assert_eq!(svd(&a, 4, 3, &mut [0.0; 3], None), Err(Unsolved::NotFinite));
        }
    }
}
