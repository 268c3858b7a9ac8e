//! Eigenvalues and eigenvectors of Hermitian matrices.

use faer::diag::DiagMut;
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::traits::ext::ComplexFieldExt;
use faer::{MatMut, MatRef, Par};

use super::Unsolved;
use super::layout::{order, reorder, transpose_with};
use super::scalar::{MatrixScalar, largest_part, of_real, safe_factor};
use super::svd::are_numbers;

/// Writes the eigenvalues of a Hermitian matrix of `n` rows, the smallest first, and, if requested,
/// its eigenvectors as columns of norm 1. Only the lower triangle is read, or only the upper one,
/// and only the real parts of the diagonal.
///
/// # Errors
/// An element of the triangle is not finite, or the iteration does not converge.
pub fn eigh<T: MatrixScalar>(
    a: &[T],
    n: usize,
    upper: bool,
    values: &mut [T::Real],
    vectors: Option<&mut [T]>,
) -> Result<(), Unsolved> {
    assert!(a.len() == n * n && values.len() == n, "a square matrix");
    assert!(vectors.as_ref().is_none_or(|vectors| vectors.len() == n * n), "room for vectors");
    let mut a = a.to_vec();
    for place in (0..n).map(|row| row * (n + 1)) {
        a[place] = of_real(a[place].real());
    }
    let triangle = (0..n).flat_map(|row| {
        let part = if upper { row..n } else { 0..row + 1 };
        a[row * n..][part].iter().copied()
    });
    let largest = largest_part(triangle).ok_or(Unsolved::NotFinite)?;
    if n == 0 {
        return Ok(());
    }
    let factor = safe_factor(largest);
    if let Some(factor) = factor {
        a.iter_mut().for_each(|x| *x = x.mul_real(factor));
    }
    // The lower triangle of the transpose is the upper one of the matrix, and the transpose is the
    // conjugate.
    let matrix = MatRef::from_row_major_slice(&a, n, n);
    let matrix = if upper { matrix.transpose() } else { matrix };
    let kind = if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
    let scratch = self_adjoint_evd_scratch::<T>(n, kind, Par::Seq, Default::default());
    let mut memory = MemBuffer::new(scratch);
    let mut found = vec![T::zero(); n];
    let mut columns = vec![T::zero(); if vectors.is_some() { n * n } else { 0 }];
    let room = vectors.is_some().then(|| MatMut::from_column_major_slice_mut(&mut columns, n, n));
    let diagonal = DiagMut::from_slice_mut(&mut found);
    let stack = MemStack::new(&mut memory);
    self_adjoint_evd(matrix, diagonal, room, Par::Seq, stack, Default::default())
        .map_err(|_| Unsolved::NotConverged)?;
    for (value, found) in values.iter_mut().zip(found) {
        *value = factor.map_or(found.real(), |factor| found.real() / factor);
    }
    if let Some(order) = order(values) {
        reorder(values, 1, &order);
        reorder(&mut columns, n, &order);
    }
    if let Some(vectors) = vectors {
        transpose_with(&columns, n, n, vectors, |x| if upper { x.conj() } else { x });
    }
    are_numbers(values)
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;
    use crate::matrices::check::{
        SampleMatrix, adjoint, assert_near, assert_orthonormal, identity, of_rank, product,
    };

    fn check<T: SampleMatrix>(a: &[T], n: usize) {
        for upper in [false, true] {
            // The other triangle is not read.
            let mut given = a.to_vec();
            for (k, x) in given.iter_mut().enumerate() {
                let (row, column) = (k / n, k % n);
                if row != column && (row < column) != upper {
                    *x = T::nan();
                }
            }
            let (mut values, mut vectors) = (vec![T::Real::zero(); n], vec![T::nan(); n * n]);
            eigh(&given, n, upper, &mut values, Some(&mut vectors)).expect("eigenvectors");
            assert!(values.windows(2).all(|pair| pair[0] <= pair[1]), "ascending");
            assert_orthonormal(&vectors, n, n);
            let mut scaled = vectors.clone();
            scaled.iter_mut().enumerate().for_each(|(k, x)| *x = x.mul_real(values[k % n]));
            assert_near(&product(&scaled, &adjoint(&vectors, n, n), n, n, n), a, 4 * n);
            let mut alone = vec![T::Real::zero(); n];
            eigh(&given, n, upper, &mut alone, None).expect("eigenvalues");
            let as_numbers = |x: &[T::Real]| x.iter().map(|x| of_real::<T>(*x)).collect::<Vec<_>>();
            assert_near(&as_numbers(&alone), &as_numbers(&values), 4 * n);
        }
    }

    fn check_all<T: SampleMatrix>() {
        for n in [0, 1, 2, 3, 40, 127, 128, 150] {
            for rank in [n, 2] {
                let a = of_rank::<T>(n, n, rank);
                let adjoint = adjoint(&a, n, n);
                let a: Vec<T> = a.iter().zip(adjoint).map(|(x, y)| *x + y).collect();
                check(&a, n);
            }
        }
        let n = 140;
        check::<T>(&identity(n), n);
        check::<T>(&vec![T::zero(); n * n], n);
        check::<T>(&vec![T::one(); n * n], n);
        let pairs = |k: usize| if k.is_multiple_of(n + 1) { (k / n / 2) as f64 } else { 0.0 };
        check::<T>(&(0..n * n).map(|k| T::sample(pairs(k), 0.0)).collect::<Vec<_>>(), n);
        // Wilkinson's matrix: pairs of eigenvalues that agree in all but the last digits.
        let wilkinson = |k: usize| match (k / n).abs_diff(k % n) {
            0 => (k / n).abs_diff(n / 2) as f64,
            1 => 1.0,
            _ => 0.0,
        };
        check::<T>(&(0..n * n).map(|k| T::sample(wilkinson(k), 0.0)).collect::<Vec<_>>(), n);
    }

    #[test]
    fn vectors_and_values_multiply_to_the_matrix() {
        check_all::<f32>();
        check_all::<f64>();
        check_all::<Complex<f32>>();
        check_all::<Complex<f64>>();
    }

    #[test]
    fn tiny_and_huge_matrices_have_eigenvalues() {
        for factor in [1e-42f32, 1e-30, 1e30, 1e38] {
            let mut values = [0.0; 2];
            let a = [2.0 * factor, factor, factor, 2.0 * factor];
            eigh(&a, 2, false, &mut values, None).expect("eigenvalues");
            assert!((values[0] / factor - 1.0).abs() < 0.01, "{values:?}");
            assert!((values[1] / factor - 3.0).abs() < 0.01, "{values:?}");
        }
    }

    #[test]
    fn non_finite_elements_are_errors() {
        let a = [1.0, f64::NAN, 1.0, 1.0];
        assert_eq!(eigh(&a, 2, true, &mut [0.0; 2], None), Err(Unsolved::NotFinite));
        assert_eq!(eigh(&a, 2, false, &mut [0.0; 2], None), Ok(()));
    }
}
