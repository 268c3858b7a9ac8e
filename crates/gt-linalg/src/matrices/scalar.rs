//! The scalar types of matrices, and scaling against overflow.

use faer::traits::ext::ComplexFieldExt;
use faer::traits::math_utils::{eps, min_positive};
use faer::traits::{ComplexField, RealField};
use num_complex::Complex;

/// A real or complex number, in single or double precision.
pub trait MatrixScalar: ComplexField<Real: Real> + Copy + Send + Sync + 'static {
    /// Creates a number from its real and imaginary parts; a real number ignores the latter.
    fn of_parts(re: Self::Real, im: Self::Real) -> Self;
}

/// A real number, in single or double precision.
pub trait Real: RealField + Copy + Send + Sync + 'static {}

impl Real for f32 {}
impl Real for f64 {}

impl<R: Real> MatrixScalar for R {
    fn of_parts(re: R, _: R) -> R {
        re
    }
}

impl<R: Real> MatrixScalar for Complex<R> {
    fn of_parts(re: R, im: R) -> Complex<R> {
        Complex { re, im }
    }
}

/// Converts a real number to the scalar type.
pub fn of_real<T: MatrixScalar>(x: T::Real) -> T {
    T::of_parts(x, T::Real::zero())
}

/// Returns the largest absolute value of the numbers' parts, or `None` if one is infinite or NaN.
pub fn largest_part<T: MatrixScalar>(numbers: impl Iterator<Item = T>) -> Option<T::Real> {
    let mut largest = T::Real::zero();
    for x in numbers {
        if !x.is_finite() {
            return None;
        }
        for part in [x.real().abs(), x.imag().abs()] {
            largest = if part > largest { part } else { largest };
        }
    }
    Some(largest)
}

/// Returns the least number that has a reciprocal and a neighbour, both with full precision.
pub fn least_exact<R: Real>() -> R {
    min_positive::<R>() / eps::<R>()
}

/// Returns the power of two to multiply numbers with before their squares are summed, if the
/// largest of them would overflow or lose digits; `None` if no scaling is needed.
pub fn safe_factor<R: Real>(largest: R) -> Option<R> {
    let least = least_exact::<R>().sqrt() / eps::<R>();
    let most = R::one() / least;
    if largest == R::zero() || (largest >= least && largest <= most) {
        return None;
    }
    let two = R::one() + R::one();
    let (mut factor, mut scaled) = (R::one(), largest);
    // The reciprocal of a subnormal factor would be infinite.
    while scaled < R::one() && factor * min_positive::<R>() < R::one() {
        (factor, scaled) = (factor * two, scaled * two);
    }
    while scaled > two {
        (factor, scaled) = (factor / two, scaled / two);
    }
    Some(factor)
}

/// Returns the Euclidean norm; it overflows only if the result does.
pub fn norm<T: MatrixScalar>(x: &[T]) -> T::Real {
    let squares = |factor: T::Real| {
        let mut sum = T::Real::zero();
        for &x in x {
            sum += x.mul_real(factor).abs2();
        }
        sum
    };
    let (one, sum) = (T::Real::one(), squares(T::Real::one()));
    let least = least_exact::<T::Real>();
    if sum > least && sum.is_finite() {
        return sum.sqrt();
    }
    match largest_part(x.iter().copied()).map(safe_factor) {
        Some(Some(factor)) => squares(factor).sqrt() * (one / factor),
        _ => sum.sqrt(),
    }
}
