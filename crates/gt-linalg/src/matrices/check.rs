//! Helpers for the tests of all factorizations.

use faer::traits::ComplexField;
use faer::traits::ext::ComplexFieldExt;
use faer::traits::math_utils::eps;

use super::scalar::{MatrixScalar, largest_part};

/// Number types that tests can generate and measure.
pub trait SampleMatrix: MatrixScalar<Real: Into<f64>> {
    fn sample(re: f64, im: f64) -> Self {
        Self::of_parts(Self::Real::from_f64_impl(re), Self::Real::from_f64_impl(im))
    }

    fn size(self) -> f64 {
        self.abs().into()
    }
}

impl<T: MatrixScalar<Real: Into<f64>>> SampleMatrix for T {}

/// Returns a matrix of numbers between -1 and 1, the same for the same seed.
pub fn random<T: SampleMatrix>(rows: usize, columns: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    };
    (0..rows * columns).map(|_| T::sample(next(), next())).collect()
}

pub fn identity<T: MatrixScalar>(n: usize) -> Vec<T> {
    let mut out = vec![T::zero(); n * n];
    super::layout::identity(&mut out, n);
    out
}

pub fn product<T: MatrixScalar>(
    a: &[T],
    b: &[T],
    rows: usize,
    depth: usize,
    columns: usize,
) -> Vec<T> {
    assert!(a.len() == rows * depth && b.len() == depth * columns);
    let mut out = vec![T::zero(); rows * columns];
    for row in 0..rows {
        for k in 0..depth {
            for column in 0..columns {
                out[row * columns + column] += a[row * depth + k] * b[k * columns + column];
            }
        }
    }
    out
}

pub fn transpose<T: MatrixScalar>(a: &[T], rows: usize, columns: usize) -> Vec<T> {
    super::layout::columns_of(a, rows, columns)
}

pub fn adjoint<T: MatrixScalar>(a: &[T], rows: usize, columns: usize) -> Vec<T> {
    transpose(a, rows, columns).into_iter().map(|x| x.conj()).collect()
}

/// Returns a random matrix of this rank.
pub fn of_rank<T: SampleMatrix>(rows: usize, columns: usize, rank: usize) -> Vec<T> {
    product(&random(rows, rank, 5), &random(rank, columns, 6), rows, rank, columns)
}

/// Fails unless the matrices are equal up to the rounding errors of sums of `depth` products.
#[track_caller]
pub fn assert_near<T: SampleMatrix>(a: &[T], b: &[T], depth: usize) {
    assert_eq!(a.len(), b.len());
    let largest: f64 = largest_part(b.iter().copied()).expect("elements are finite").into();
    let tolerance = 30.0 * eps::<T::Real>().into() * largest * (depth.max(4) as f64);
    for (index, (&x, &y)) in a.iter().zip(b).enumerate() {
        let off = (x - y).size();
        assert!(off <= tolerance, "{x:?} for {y:?} at {index}, off by {off:e} of {tolerance:e}");
    }
}

/// Fails unless the columns are orthonormal.
#[track_caller]
pub fn assert_orthonormal<T: SampleMatrix>(a: &[T], rows: usize, columns: usize) {
    let gram = product(&adjoint(a, rows, columns), a, columns, rows, columns);
    assert_near(&gram, &identity(columns), rows);
}
