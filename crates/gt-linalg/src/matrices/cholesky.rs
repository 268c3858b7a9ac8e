//! The Cholesky factorization of positive definite matrices.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt::factor::{LltError, cholesky_in_place, cholesky_in_place_scratch};
use faer::traits::ext::ComplexFieldExt;
use faer::{MatMut, Par};

use super::layout::{columns_of, transpose};
use super::scalar::{MatrixScalar, of_real};

/// Replaces a Hermitian matrix of `n` rows by the lower triangular L with a = L L^H, and zeros
/// above it. Only its lower triangle is read, and only the real parts of its diagonal.
///
/// # Errors
/// The number, from 1, of the first leading minor that is not positive: LAPACK's info. The matrix
/// then holds no factor.
pub fn cholesky<T: MatrixScalar>(a: &mut [T], n: usize) -> Result<(), usize> {
    assert!(a.len() == n * n, "a square matrix");
    if n == 0 {
        return Ok(());
    }
    let mut columns = columns_of(a, n, n);
    for place in (0..n).map(|row| row * (n + 1)) {
        columns[place] = of_real(columns[place].real());
    }
    let mut memory =
        MemBuffer::new(cholesky_in_place_scratch::<T>(n, Par::Seq, Default::default()));
    let factor = cholesky_in_place(
        MatMut::from_column_major_slice_mut(&mut columns, n, n),
        Default::default(),
        Par::Seq,
        MemStack::new(&mut memory),
        Default::default(),
    );
    if let Err(LltError::NonPositivePivot { index }) = factor {
        return Err(index + 1);
    }
    for (column, values) in columns.chunks_exact_mut(n).enumerate() {
        values[..column].fill(T::zero());
    }
    transpose(&columns, n, n, a);
    Ok(())
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;
    use crate::matrices::check::{SampleMatrix, adjoint, assert_near, identity, product, random};

    fn check<T: SampleMatrix>(n: usize) {
        let a = random::<T>(n, n, 3);
        let mut a = product(&a, &adjoint(&a, n, n), n, n, n);
        for i in 0..n {
            a[i * n + i] += T::one();
        }
        let mut factor = a.clone();
        // The part above the diagonal is not read.
        for row in 0..n {
            factor[row * n + row + 1..][..n - row - 1].fill(T::nan());
        }
        assert_eq!(cholesky(&mut factor, n), Ok(()));
        for row in 0..n {
            assert!(factor[row * n + row + 1..][..n - row - 1].iter().all(|x| *x == T::zero()));
        }
        assert_near(&product(&factor, &adjoint(&factor, n, n), n, n, n), &a, n);
    }

    #[test]
    fn factor_times_its_adjoint_is_the_matrix() {
        for n in [0, 1, 2, 3, 17, 64, 150] {
            check::<f32>(n);
            check::<f64>(n);
            check::<Complex<f32>>(n);
            check::<Complex<f64>>(n);
        }
    }

    #[test]
    fn the_first_non_positive_minor_is_reported() {
        for n in [1, 2, 40, 200] {
            for bad in [0, n / 2, n - 1] {
                for value in [0.0, -1.0, f64::NAN] {
                    let mut a = identity::<f64>(n);
                    a[bad * n + bad] = value;
                    assert_eq!(cholesky(&mut a, n), Err(bad + 1), "{n} {bad} {value}");
                }
            }
        }
        assert_eq!(cholesky(&mut [4.0, 0.0, 4.0, 4.0], 2), Err(2));
    }
}
