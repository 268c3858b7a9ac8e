//! Balancing: scales rows and columns to similar norms before eigenvalues are computed.

use faer::traits::ext::ComplexFieldExt;
use faer::traits::math_utils::{from_f64, min_positive};

use super::scalar::{MatrixScalar, Real, least_exact, norm};

/// Scales the rows and columns of a square matrix stored by columns, by powers of two, until row k
/// and column k have similar norms. The matrix becomes D^-1 a D, which has the same eigenvalues.
/// Returns the diagonal of D. As LAPACK's gebal, but without exchanging rows.
pub fn balance<T: MatrixScalar>(a: &mut [T], n: usize) -> Vec<T::Real> {
    let mut factors = vec![T::Real::one(); n];
    let mut row = vec![T::zero(); n];
    loop {
        let mut is_balanced = true;
        for k in 0..n {
            for (x, column) in row.iter_mut().zip(a.chunks_exact(n)) {
                *x = column[k];
            }
            let column = &mut a[k * n..][..n];
            let Some(factor) = factor(norm(column), norm(&row)) else { continue };
            let total = factor * factors[k];
            if !total.is_finite() || total < min_positive() {
                continue;
            }
            is_balanced = false;
            factors[k] = total;
            column.iter_mut().for_each(|x| *x = x.mul_real(factor));
            let inverse = T::Real::one() / factor;
            for column in a.chunks_exact_mut(n) {
                column[k] = column[k].mul_real(inverse);
            }
        }
        if is_balanced {
            return factors;
        }
    }
}

/// Returns the power of two that makes the norms of a column and a row similar, if it makes a
/// significant difference.
fn factor<R: Real>(column: R, row: R) -> Option<R> {
    if column == R::zero() || row == R::zero() {
        return None;
    }
    let two = R::one() + R::one();
    let least = least_exact::<R>();
    let most = R::one() / least;
    let (mut factor, mut longer, mut shorter) = (R::one(), column, row);
    while longer < shorter / two && longer < most && shorter > least {
        factor *= two;
        (longer, shorter) = (longer * two, shorter / two);
    }
    while longer / two >= shorter && shorter < most && longer > least {
        factor /= two;
        (longer, shorter) = (longer / two, shorter * two);
    }
    let little = from_f64::<R>(0.95);
    (longer + shorter < little * (column + row)).then_some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_and_column_norms_become_similar() {
        let original = [1.0f64, 1e-10, 1e10, 1.0];
        let mut a = original;
        let factors = balance(&mut a, 2);
        assert!(a[1] / a[2] > 0.1 && a[1] / a[2] < 10.0);
        for (k, (x, original)) in a.iter().zip(original).enumerate() {
            assert_eq!(x * factors[k % 2] / factors[k / 2], original);
        }
    }

    #[test]
    fn balanced_and_triangular_matrices_are_unchanged() {
        for original in [[1.0f32, 1.0, 1.0, 1.0], [0.0; 4], [0.0, 0.0, 5.0, 0.0]] {
            let mut a = original;
            assert_eq!((balance(&mut a, 2), a), (vec![1.0; 2], original));
        }
    }
}
