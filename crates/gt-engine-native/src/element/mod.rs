//! The element types and their arithmetic.
//!
//! - The traits are here: [`Element`] for all types, [`Number`] for those that support arithmetic,
//!   [`Whole`] for bool and the integers.
//! - [`boolean`], [`integers`], [`floats`] and [`complex`]: the types.
//! - [`dispatch`]: macros from a dtype to its element type.

mod boolean;
mod complex;
mod dispatch;
mod floats;
mod integers;

use std::cmp::Ordering;

use gt_ir::{DType, Scalar};

pub use boolean::Bool;
pub use complex::Complex;
pub(crate) use dispatch::{with_bits, with_element, with_number, with_real};

/// The type of a tensor's elements. It is plain data: every bit pattern of its size is a valid
/// value.
pub trait Element: bytemuck::Pod + Send + Sync + PartialOrd {
    const DTYPE: DType;
    /// Evaluated at compile time wherever memory of the dtype is used as elements of this type.
    const FITS: () = assert!(
        size_of::<Self>() == Self::DTYPE.size() && align_of::<Self>() <= Self::DTYPE.size(),
        "an element is as large as its dtype says"
    );

    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
    /// Keeps the low bits, as a cast in C does.
    fn from_i64(value: i64) -> Self;
    /// Creates a number from its real and imaginary parts; real types ignore the latter.
    #[inline(always)]
    fn from_parts(real: f64, _imaginary: f64) -> Self {
        Self::from_f64(real)
    }
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    /// Truncates floats towards zero.
    fn to_i64(self) -> i64;
    /// Returns the real and imaginary parts.
    #[inline(always)]
    fn parts(self) -> (f64, f64) {
        (self.to_f64(), 0.0)
    }
    fn truth(self) -> bool;

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.partial_cmp(&self) != Some(Ordering::Equal)
    }

    /// Converts to another element type by the rules of the cast operation.
    #[inline(always)]
    fn cast<B: Element>(self) -> B {
        match (B::DTYPE, Self::DTYPE) {
            (DType::Bool, _) => B::from_i64(i64::from(self.truth())),
            (DType::C64 | DType::C128, _) => {
                let (real, imaginary) = self.parts();
                B::from_parts(real, imaginary)
            }
            (DType::F64, _) | (DType::F16 | DType::BF16, DType::F64) => B::from_f64(self.to_f64()),
            (DType::F32 | DType::F16 | DType::BF16, _) => B::from_f32(self.to_f32()),
            _ => B::from_i64(self.to_i64()),
        }
    }

    fn from_scalar(value: Scalar) -> Self {
        match Self::DTYPE {
            DType::Bool => Self::from_i64(i64::from(value.as_bool())),
            dtype if !dtype.is_exact() => Self::from_f64(value.as_f64()),
            _ => Self::from_i64(value.as_i64()),
        }
    }
}

/// Arithmetic, for all types but the 16-bit floats, which are computed as float32. For bool, plus
/// is or, and times is and.
pub trait Number: Element {
    const ZERO: Self;
    const ONE: Self;
    const LOWEST: Self;
    const HIGHEST: Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    fn floor_divide(self, other: Self) -> Self;
    fn remainder(self, other: Self) -> Self;
    fn power(self, other: Self) -> Self;
    fn negative(self) -> Self;
    fn absolute(self) -> Self;

    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other || self.is_nan() { self } else { other }
    }

    #[inline(always)]
    fn smaller(self, other: Self) -> Self {
        if self < other || self.is_nan() { self } else { other }
    }
}

/// Bool and the integers.
pub trait Whole: Number {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn not(self) -> Self;
}

/// Returns the dtype that values of `dtype` are computed in: float32 for the 16-bit floats, else
/// `dtype` itself.
pub fn compute_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}
