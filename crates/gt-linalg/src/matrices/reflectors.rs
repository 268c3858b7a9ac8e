//! Householder reflectors H = 1 - tau v v^H in LAPACK's convention, single and in blocks.

use faer::linalg::matmul::matmul;
use faer::traits::ext::ComplexFieldExt;
use faer::{Accum, Mat, MatMut, MatRef, Par};
use gt_simd::vectorized;

use super::layout::{scale, subtract};
use super::scalar::{MatrixScalar, least_exact, norm, of_real};

/// Computes the reflector whose H^H maps `x` to a multiple of the first unit vector, as LAPACK's
/// larfg: `x[0]` is replaced by that multiple, which is real, and the other elements by v, whose
/// first element, a one, is omitted. Returns tau.
pub fn reflector<T: MatrixScalar>(x: &mut [T]) -> T {
    let (head, tail) = x.split_first_mut().expect("the column is not empty");
    let zero = T::Real::zero();
    let mut tail_norm = norm(tail);
    if tail_norm == zero && head.imag() == zero {
        return T::zero();
    }
    let length = |head: T, tail: T::Real| {
        let length = norm(&[of_real(head.abs()), tail]);
        if head.real() < zero { length } else { -length }
    };
    let mut beta = length(*head, tail_norm);
    // The reciprocals of smaller numbers may overflow.
    let least = least_exact::<T::Real>();
    let (mut rounds, up) = (0, T::Real::one() / least);
    while beta.abs() < least && rounds < 20 {
        scale(tail, of_real(up));
        *head = head.mul_real(up);
        beta *= up;
        rounds += 1;
    }
    if rounds > 0 {
        tail_norm = norm(tail);
        beta = length(*head, tail_norm);
    }
    let tau = T::of_parts((beta - head.real()) / beta, -head.imag() / beta);
    scale(tail, (*head - of_real::<T>(beta)).recip());
    for _ in 0..rounds {
        beta *= least;
    }
    *head = of_real(beta);
    tau
}

/// Applies H^H to a column; `tail` is v without its leading one.
pub fn apply_adjoint<T: MatrixScalar>(tail: &[T], tau: T, column: &mut [T]) {
    let (head, column) = column.split_first_mut().expect("the column is not empty");
    let dot = *head + inner(tail, column);
    let factor = dot * tau.conj();
    *head -= factor;
    subtract(column, tail, factor);
}

/// Returns the inner product, conjugating the first vector; several sums are computed side by side.
fn inner<T: MatrixScalar>(x: &[T], y: &[T]) -> T {
    const LANES: usize = 32;
    vectorized(
        #[inline(always)]
        || {
            let mut sums = [T::zero(); LANES];
            let (x, x_rest) = x.as_chunks::<LANES>();
            let (y, y_rest) = y.as_chunks::<LANES>();
            for (x, y) in x.iter().zip(y) {
                for lane in 0..LANES {
                    sums[lane] += x[lane].conj() * y[lane];
                }
            }
            let mut sum = T::zero();
            for x in sums {
                sum += x;
            }
            for (x, y) in x_rest.iter().zip(y_rest) {
                sum += x.conj() * *y;
            }
            sum
        },
    )
}

/// The product of several reflectors, H1 H2 ... Hk = 1 - V T V^H.
pub struct ReflectorBlock<T: MatrixScalar> {
    vectors: Mat<T>,
    factor: Mat<T>,
}

impl<T: MatrixScalar> ReflectorBlock<T> {
    /// Creates the product of the reflectors whose vectors are the columns of `packed`, below its
    /// diagonal.
    pub fn new(packed: MatRef<'_, T>, tau: &[T]) -> ReflectorBlock<T> {
        let (rows, count) = (packed.nrows(), tau.len());
        let vectors = Mat::from_fn(rows, count, |row, column| match row.cmp(&column) {
            std::cmp::Ordering::Less => T::zero(),
            std::cmp::Ordering::Equal => T::one(),
            std::cmp::Ordering::Greater => packed[(row, column)],
        });
        let mut products = Mat::<T>::zeros(count, count);
        let (left, right) = (vectors.adjoint(), vectors.as_ref());
        matmul(products.as_mut(), Accum::Replace, left, right, T::one(), Par::Seq);
        let mut factor = Mat::<T>::zeros(count, count);
        for column in 0..count {
            factor[(column, column)] = tau[column];
            for row in 0..column {
                let mut sum = T::zero();
                for k in row..column {
                    sum += factor[(row, k)] * products[(k, column)];
                }
                factor[(row, column)] = -(tau[column] * sum);
            }
        }
        ReflectorBlock { vectors, factor }
    }

    /// Multiplies the matrix from the left by the product, or by its adjoint.
    pub fn apply(&self, matrix: MatMut<'_, T>, adjoint: bool) {
        let (count, columns) = (self.factor.nrows(), matrix.ncols());
        let mut matrix = matrix;
        let mut inner = Mat::<T>::zeros(count, columns);
        let mut scaled = Mat::<T>::zeros(count, columns);
        let (one, replace) = (T::one(), Accum::Replace);
        let vectors = self.vectors.as_ref();
        matmul(inner.as_mut(), replace, vectors.adjoint(), matrix.as_ref(), one, Par::Seq);
        if adjoint {
            matmul(scaled.as_mut(), replace, self.factor.adjoint(), &inner, one, Par::Seq);
        } else {
            matmul(scaled.as_mut(), replace, &self.factor, &inner, one, Par::Seq);
        }
        matmul(matrix.as_mut(), Accum::Add, vectors, &scaled, -one, Par::Seq);
    }
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;

    #[test]
    fn a_column_of_zeros_below_the_diagonal_needs_no_reflection() {
        let mut x = [3.0f32, 0.0, 0.0];
        assert_eq!((reflector(&mut x), x), (0.0, [3.0, 0.0, 0.0]));
        // A single complex number becomes real.
        let mut x = [Complex::new(3.0f64, 4.0)];
        let tau = reflector(&mut x);
        assert_eq!(x, [Complex::new(-5.0, 0.0)]);
        assert!((tau - Complex::new(1.6, 0.8)).norm() < 1e-15);
    }

    #[test]
    fn tiny_and_huge_columns_are_reflected_as_others_are() {
        let mut expected = [3.0f32, 4.0, 12.0];
        let tau = reflector(&mut expected);
        assert!((expected[0] + 13.0).abs() < 1e-5);
        for factor in [2f32.powi(-140), 2f32.powi(-100), 2f32.powi(100), 2f32.powi(123)] {
            let mut x = [3.0 * factor, 4.0 * factor, 12.0 * factor];
            assert!((reflector(&mut x) - tau).abs() < 1e-5, "{factor:e}");
            assert!((x[0] / factor + 13.0).abs() < 0.01);
            assert!((x[1] - expected[1]).abs() < 1e-5 && (x[2] - expected[2]).abs() < 1e-5);
        }
    }
}
