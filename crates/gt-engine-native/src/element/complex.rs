//! Complex numbers as element types.

use gt_ir::DType;
use num_complex::ComplexFloat;

use super::{Element, Number};

/// A complex number as tensors store it: the real part, then the imaginary part.
///
/// The lexicographic order exists only for the trait bounds of kernels: inference rejects
/// comparisons of complex numbers by size.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug)]
#[repr(C)]
pub struct Complex<T> {
    pub re: T,
    pub im: T,
}

// SAFETY: two floats of one type, adjacent and without padding; zeros are a valid value.
unsafe impl bytemuck::Zeroable for Complex<f32> {}
// SAFETY: as above; every bit pattern is a valid value.
unsafe impl bytemuck::Pod for Complex<f32> {}
// SAFETY: as for float32.
unsafe impl bytemuck::Zeroable for Complex<f64> {}
// SAFETY: as for float32.
unsafe impl bytemuck::Pod for Complex<f64> {}

impl<T> From<num_complex::Complex<T>> for Complex<T> {
    #[inline(always)]
    fn from(value: num_complex::Complex<T>) -> Complex<T> {
        Complex { re: value.re, im: value.im }
    }
}

impl<T> From<Complex<T>> for num_complex::Complex<T> {
    #[inline(always)]
    fn from(value: Complex<T>) -> num_complex::Complex<T> {
        num_complex::Complex::new(value.re, value.im)
    }
}

/// Converts a number to num-complex's type.
macro_rules! by {
    ($value:expr) => {
        num_complex::Complex::from($value)
    };
}

macro_rules! complex {
    ($($part:ty => $dtype:ident),*) => { $(
        impl Element for Complex<$part> {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn from_f32(value: f32) -> Self { Complex { re: <$part>::from(value), im: 0.0 } }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { Complex { re: value as $part, im: 0.0 } }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { Complex { re: value as $part, im: 0.0 } }
            #[inline(always)]
            fn from_parts(re: f64, im: f64) -> Self {
                Complex { re: re as $part, im: im as $part }
            }
            #[inline(always)]
            fn to_f32(self) -> f32 { self.re as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { f64::from(self.re) }
            #[inline(always)]
            fn to_i64(self) -> i64 { self.re as i64 }
            #[inline(always)]
            fn parts(self) -> (f64, f64) { (f64::from(self.re), f64::from(self.im)) }
            #[inline(always)]
            fn truth(self) -> bool { self.re != 0.0 || self.im != 0.0 }
            #[inline(always)]
            fn is_nan(self) -> bool { self.re.is_nan() || self.im.is_nan() }
        }

        /// Inference rejects complex numbers for operations that are not defined for them, so their
        /// methods here are never called.
        impl Number for Complex<$part> {
            const ZERO: Self = Complex { re: 0.0, im: 0.0 };
            const ONE: Self = Complex { re: 1.0, im: 0.0 };
            const LOWEST: Self = Complex { re: <$part>::NEG_INFINITY, im: 0.0 };
            const HIGHEST: Self = Complex { re: <$part>::INFINITY, im: 0.0 };
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                Complex { re: self.re + other.re, im: self.im + other.im }
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                Complex { re: self.re - other.re, im: self.im - other.im }
            }
            #[inline(always)]
            fn times(self, other: Self) -> Self { (by!(self) * by!(other)).into() }
            #[inline(always)]
            fn floor_divide(self, other: Self) -> Self { (by!(self) / by!(other)).into() }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self { (by!(self) % by!(other)).into() }
            /// Returns 1 for the exponent 0, whatever the base.
            #[inline(always)]
            fn power(self, other: Self) -> Self {
                if other == Self::ZERO { return Self::ONE; }
                by!(self).powc(by!(other)).into()
            }
            #[inline(always)]
            fn negative(self) -> Self { Complex { re: -self.re, im: -self.im } }
            #[inline(always)]
            fn absolute(self) -> Self { Complex { re: by!(self).abs(), im: 0.0 } }
        }
    )* };
}

complex!(f32 => C64, f64 => C128);
