//! The QR factorization by Householder reflectors, in LAPACK's packed format.

use faer::traits::ext::ComplexFieldExt;
use faer::{MatMut, MatRef};

use super::layout::{column_of, columns_of, transpose};
use super::reflectors::{ReflectorBlock, apply_adjoint, reflector};
use super::scalar::MatrixScalar;

/// Columns whose reflectors are applied together.
const BLOCK: usize = 32;
/// At most this many columns are factored one by one.
const NARROW: usize = 4;

/// Replaces a matrix by its factors, a = Q R: R in the upper triangle, and below it the vectors of
/// the reflectors whose product H1 H2 ... Hk is Q. `tau` has a factor for each: as many as rows or
/// columns, whichever are fewer. As LAPACK's geqrf.
pub fn qr<T: MatrixScalar>(a: &mut [T], rows: usize, columns: usize, tau: &mut [T]) {
    assert!(a.len() == rows * columns, "the lengths of a matrix");
    assert!(tau.len() == rows.min(columns), "a factor for each row or column");
    if a.is_empty() {
        return;
    }
    let mut by_columns = columns_of(a, rows, columns);
    let mut rest = MatMut::from_column_major_slice_mut(&mut by_columns, rows, columns);
    for tau in tau.chunks_mut(BLOCK) {
        let (mut block, mut right) = rest.split_at_col_mut(tau.len());
        factor(block.as_mut(), tau);
        if right.ncols() > 0 {
            ReflectorBlock::new(block.as_ref(), tau).apply(right.as_mut(), true);
        }
        let below = right.nrows() - tau.len();
        rest = right.subrows_mut(tau.len(), below);
    }
    transpose(&by_columns, columns, rows, a);
}

/// Factors a block of columns, at most as many as there are rows.
fn factor<T: MatrixScalar>(mut a: MatMut<'_, T>, tau: &mut [T]) {
    let count = tau.len();
    if count > NARROW {
        let half = count / 2;
        let (left_tau, right_tau) = tau.split_at_mut(half);
        let (mut left, mut right) = a.split_at_col_mut(half);
        factor(left.as_mut(), left_tau);
        ReflectorBlock::new(left.as_ref(), left_tau).apply(right.as_mut(), true);
        let below = right.nrows() - half;
        return factor(right.subrows_mut(half, below), right_tau);
    }
    for (k, tau) in tau.iter_mut().enumerate() {
        let (left, mut right) = a.as_mut().split_at_col_mut(k + 1);
        let column = &mut column_of(left, k)[k..];
        *tau = reflector(column);
        for other in 0..right.ncols() {
            apply_adjoint(&column[1..], *tau, &mut column_of(right.as_mut(), other)[k..]);
        }
    }
}

/// Writes the first columns of the product of reflectors H1 H2 ... Hk, as many as `out` has: at
/// most as many as rows, and at least as many as reflectors. The vectors are below the diagonal of
/// `packed`, as [`qr`] leaves them. As LAPACK's orgqr or ungqr.
pub fn householder_product<T: MatrixScalar>(
    packed: &[T],
    rows: usize,
    columns: usize,
    tau: &[T],
    out: &mut [T],
    out_columns: usize,
) {
    assert!(packed.len() == rows * columns && out.len() == rows * out_columns);
    assert!(tau.len() <= columns && tau.len() <= out_columns && out_columns <= rows);
    if out.is_empty() {
        return;
    }
    let packed = columns_of(packed, rows, columns);
    let packed = MatRef::from_column_major_slice(&packed, rows, columns);
    let mut by_columns = vec![T::zero(); out.len()];
    by_columns.iter_mut().step_by(rows + 1).for_each(|x| *x = T::one());
    let mut product = MatMut::from_column_major_slice_mut(&mut by_columns, rows, out_columns);
    for (number, tau) in tau.chunks(BLOCK).enumerate().rev() {
        let (at, below) = (number * BLOCK, rows - number * BLOCK);
        let block = ReflectorBlock::new(packed.submatrix(at, at, below, tau.len()), tau);
        // The columns to the left are still zeros in these rows.
        block.apply(product.as_mut().submatrix_mut(at, at, below, out_columns - at), false);
    }
    transpose(&by_columns, out_columns, rows, out);
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;
    use crate::matrices::check::{
        SampleMatrix, assert_near, assert_orthonormal, identity, of_rank, product, random,
    };

    fn check<T: SampleMatrix>(a: &[T], rows: usize, columns: usize) {
        let count = rows.min(columns);
        let (mut packed, mut tau) = (a.to_vec(), vec![T::zero(); count]);
        qr(&mut packed, rows, columns, &mut tau);
        for width in [count, (count + rows) / 2, rows] {
            let mut q = vec![T::nan(); rows * width];
            householder_product(&packed, rows, columns, &tau, &mut q, width);
            assert_orthonormal(&q, rows, width);
            let upper = |k: usize| if k / columns > k % columns { T::zero() } else { packed[k] };
            let mut r: Vec<T> = (0..count * columns).map(upper).collect();
            r.resize(width * columns, T::zero());
            assert!((0..count).all(|k| r[k * columns + k].imag() == T::Real::zero()));
            assert_near(&product(&q, &r, rows, width, columns), a, rows);
        }
    }

    fn check_all<T: SampleMatrix>() {
        for rows in [0, 1, 2, 5, 33, 100] {
            for columns in [0, 1, 3, 17, 70] {
                check::<T>(&random(rows, columns, 1), rows, columns);
                check::<T>(&of_rank(rows, columns, 2), rows, columns);
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
    fn zero_reflectors_produce_the_identity() {
        let mut out = vec![0f32; 9];
        householder_product(&[], 3, 0, &[], &mut out, 3);
        assert_eq!(out, identity::<f32>(3));
    }

    #[test]
    fn values_match_lapack() {
        // The values of torch.geqrf.
        let expected = [-5.916079783099615, -7.859934568975204, 0.4337717455676132];
        let expected = [expected, [0.6866065623255952, 0.7229529092793553, 0.6520231559174967]];
        let (mut a, mut tau) = ([1.0f64, 2.0, 3.0, 4.0, 5.0, 6.5], [0.0; 2]);
        qr(&mut a, 3, 2, &mut tau);
        assert_near(&a, expected.as_flattened(), 3);
        assert_near(&tau, &[1.1690308509457032, 1.4033766124062892], 3);
        let i = Complex::<f64>::i();
        let (mut a, mut tau) = ([1.0 + i, 2.0 * i, 3.0 - i, 4.0 + 0.0 * i], [0.0 * i; 2]);
        qr(&mut a, 2, 2, &mut tau);
        let expected = [
            Complex::new(-3.4641016151377544, 0.0),
            Complex::new(-4.0414518843273814, -1.732050807568878),
            Complex::new(0.5921341984813154, -0.35665276818126035),
            Complex::new(-0.8164965809277258, 0.0),
        ];
        assert_near(&a, &expected, 3);
        let expected = [
            Complex::new(1.288675134594813, 0.2886751345948129),
            Complex::new(1.3378726656111681, -0.9411918305174581),
        ];
        assert_near(&tau, &expected, 3);
    }
}
