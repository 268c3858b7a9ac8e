//! Eigenvectors by inverse iteration, for matrices whose back substitution overflows.

use faer::traits::ext::ComplexFieldExt;
use faer::traits::math_utils::{eps, from_f64, max_positive};
use num_complex::Complex;

use super::layout::transpose;
use super::lu::lu;
use super::scalar::{Real, largest_part};

/// Writes an eigenvector, of any norm, of a matrix stored by columns, whose eigenvalue is known up
/// to rounding. For nearly defective blocks back substitution yields unbounded numbers; here they
/// are scaled down along the way.
pub fn eigenvector<R: Real>(columns: &[Complex<R>], value: Complex<R>, vector: &mut [Complex<R>]) {
    let n = vector.len();
    let mut factors = vec![Complex::zero(); n * n];
    transpose(columns, n, n, &mut factors);
    factors.iter_mut().step_by(n + 1).for_each(|x| *x -= value);
    let largest = largest_part(factors.iter().copied()).unwrap_or(R::one());
    let largest = if largest > R::zero() { largest } else { R::one() };
    lu(&mut factors, n, n, &mut vec![0; n]);
    // Almost any right-hand side will do, except for the few whose solution is short. It is not
    // made of small integers, as matrices may be.
    for (k, x) in vector.iter_mut().enumerate() {
        let part = (0.618_033_988_749_894_9 * (k + 1) as f64).fract();
        *x = Complex { re: from_f64::<R>(1.0 + part), im: R::zero() };
    }
    solve_scaled(&factors, largest * eps::<R>(), vector);
}

/// Solves U x = b up to the norm of x, where U is the upper triangle of a row-major matrix;
/// diagonal elements below `least` are replaced by it.
fn solve_scaled<R: Real>(upper: &[Complex<R>], least: R, x: &mut [Complex<R>]) {
    let n = x.len();
    let most = max_positive::<R>().sqrt().sqrt();
    for k in (0..n).rev() {
        let row = &upper[k * n..][..n];
        let mut sum = x[k];
        for (factor, x) in row[k + 1..].iter().zip(&x[k + 1..]) {
            sum -= *factor * *x;
        }
        let pivot =
            if row[k].abs() < least { Complex { re: least, im: R::zero() } } else { row[k] };
        x[k] = sum * pivot.recip();
        let size = x[k].abs();
        if size > most {
            let factor = R::one() / size;
            x.iter_mut().for_each(|x| *x = x.mul_real(factor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_jordan_block_has_one_vector() {
        let n = 100;
        let jordan = |k: usize| f32::from(k / n == k % n) * 2.0 + f32::from(k % n + 1 == k / n);
        let columns: Vec<_> = (0..n * n).map(|k| Complex::new(jordan(k), 0.0)).collect();
        let mut vector = vec![Complex::zero(); n];
        eigenvector(&columns, Complex { re: 2.0, im: 0.0 }, &mut vector);
        let rest = vector[1..].iter().map(|x| x.norm()).fold(0.0, f32::max);
        assert!(rest < 1e-4 * vector[0].norm(), "{vector:?}");
    }
}
