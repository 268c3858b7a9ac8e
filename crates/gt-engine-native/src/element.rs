//! The element types and their arithmetic.

use std::cmp::Ordering;

use gt_ir::{DType, Scalar};
use half::{bf16, f16};

/// A bool as tensors hold it: one byte, 0 or 1; other values mean nothing, but do no harm.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Bool(pub u8);

impl From<bool> for Bool {
    #[inline(always)]
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}

/// A type of tensors' elements. It is plain data: any bits of its size are a value.
pub trait Element: bytemuck::Pod + Send + Sync + PartialOrd {
    const DTYPE: DType;
    /// Looked at by the compiler wherever memory of the dtype is taken for elements of this type.
    const FITS: () = assert!(
        size_of::<Self>() == Self::DTYPE.size() && align_of::<Self>() <= Self::DTYPE.size(),
        "an element is as large as its dtype says"
    );

    fn from_f32(value: f32) -> Self;
    fn from_f64(value: f64) -> Self;
    /// Keeps the low bits, as C does.
    fn from_i64(value: i64) -> Self;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    /// Floats are cut towards zero.
    fn to_i64(self) -> i64;
    fn truth(self) -> bool;

    #[inline(always)]
    fn is_nan(self) -> bool {
        self.partial_cmp(&self) != Some(Ordering::Equal)
    }

    /// Into another element type, by the rules of the cast operation.
    #[inline(always)]
    fn cast<B: Element>(self) -> B {
        match (B::DTYPE, Self::DTYPE) {
            (DType::Bool, _) => B::from_i64(i64::from(self.truth())),
            (DType::F64, _) | (DType::F16 | DType::BF16, DType::F64) => B::from_f64(self.to_f64()),
            (DType::F32 | DType::F16 | DType::BF16, _) => B::from_f32(self.to_f32()),
            _ => B::from_i64(self.to_i64()),
        }
    }

    fn from_scalar(value: Scalar) -> Self {
        match Self::DTYPE {
            DType::Bool => Self::from_i64(i64::from(value.as_bool())),
            dtype if dtype.is_float() => Self::from_f64(value.as_f64()),
            _ => Self::from_i64(value.as_i64()),
        }
    }
}

/// Arithmetic, for the types that are computed in: all but the 16-bit floats, which are
/// computed as float32. For bool, plus is or and times is and.
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

macro_rules! integers {
    ($($type:ty => $dtype:ident),*) => { $(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn from_f32(value: f32) -> Self { value as i64 as $type }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as i64 as $type }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { value as $type }
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn truth(self) -> bool { self != 0 }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
        }

        impl Number for $type {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$type>::MIN;
            const HIGHEST: Self = <$type>::MAX;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self.wrapping_mul(other) }
            /// 0 where the divisor is: callers report that beforehand.
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn floor_divide(self, other: Self) -> Self {
                if other == 0 { return 0; }
                let quotient = self.wrapping_div(other);
                let inexact = self.wrapping_rem(other) != 0;
                if inexact && ((self < 0) != (other < 0)) { quotient - 1 } else { quotient }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn remainder(self, other: Self) -> Self {
                if other == 0 { return 0; }
                let rest = self.wrapping_rem(other);
                let turns = rest != 0 && ((rest < 0) != (other < 0));
                if turns { rest.wrapping_add(other) } else { rest }
            }
            /// A negative exponent gives 0 for all but 1 and -1, as in PyTorch.
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn power(self, other: Self) -> Self {
                if other < 0 {
                    return match self.to_i64() {
                        1 => 1,
                        -1 if other & 1 == 0 => 1,
                        -1 => self,
                        _ => 0,
                    };
                }
                let (mut result, mut base, mut rest) = (1, self, other);
                while rest > 0 {
                    if rest & 1 == 1 { result = Number::times(result, base); }
                    base = Number::times(base, base);
                    rest >>= 1;
                }
                result
            }
            #[inline(always)]
            fn negative(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn absolute(self) -> Self { if self < 0 { self.wrapping_neg() } else { self } }
        }

        impl Whole for $type {
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn not(self) -> Self { !self }
        }
    )* };
}

integers!(u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64);

macro_rules! floats {
    ($($type:ty => $dtype:ident),*) => { $(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn from_f32(value: f32) -> Self { value as $type }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { value as $type }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { value as $type }
            #[inline(always)]
            fn to_f32(self) -> f32 { self as f32 }
            #[inline(always)]
            fn to_f64(self) -> f64 { self as f64 }
            #[inline(always)]
            fn to_i64(self) -> i64 { self as i64 }
            #[inline(always)]
            fn truth(self) -> bool { self != 0.0 }
            #[inline(always)]
            fn is_nan(self) -> bool { <$type>::is_nan(self) }
        }

        impl Number for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$type>::NEG_INFINITY;
            const HIGHEST: Self = <$type>::INFINITY;
            #[inline(always)]
            fn plus(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn minus(self, other: Self) -> Self { self - other }
            #[inline(always)]
            fn times(self, other: Self) -> Self { self * other }
            /// By way of the exact remainder, as Python and PyTorch do.
            #[inline(always)]
            fn floor_divide(self, other: Self) -> Self {
                if other == 0.0 { return self / other; }
                let rest = self % other;
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && ((other < 0.0) != (rest < 0.0)) { quotient -= 1.0; }
                if quotient == 0.0 { return <$type>::copysign(0.0, self / other); }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }
            #[inline(always)]
            fn remainder(self, other: Self) -> Self {
                let rest = self % other;
                if rest != 0.0 && ((rest < 0.0) != (other < 0.0)) { rest + other } else { rest }
            }
            #[inline(always)]
            fn power(self, other: Self) -> Self { self.powf(other) }
            #[inline(always)]
            fn negative(self) -> Self { -self }
            #[inline(always)]
            fn absolute(self) -> Self { self.abs() }
        }
    )* };
}

floats!(f32 => F32, f64 => F64);

macro_rules! halves {
    ($($type:ty => $dtype:ident),*) => { $(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            #[inline(always)]
            fn from_f32(value: f32) -> Self { <$type>::from_f32(value) }
            #[inline(always)]
            fn from_f64(value: f64) -> Self { <$type>::from_f64(value) }
            #[inline(always)]
            fn from_i64(value: i64) -> Self { <$type>::from_f32(value as f32) }
            #[inline(always)]
            fn to_f32(self) -> f32 { <$type>::to_f32(self) }
            #[inline(always)]
            fn to_f64(self) -> f64 { <$type>::to_f64(self) }
            #[inline(always)]
            fn to_i64(self) -> i64 { <$type>::to_f32(self) as i64 }
            #[inline(always)]
            fn truth(self) -> bool { self.to_bits() & 0x7fff != 0 }
            #[inline(always)]
            fn is_nan(self) -> bool { <$type>::is_nan(self) }
        }
    )* };
}

halves!(f16 => F16, bf16 => BF16);

impl Element for Bool {
    const DTYPE: DType = DType::Bool;
    #[inline(always)]
    fn from_f32(value: f32) -> Self {
        Bool::from(value != 0.0)
    }
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        Bool::from(value != 0.0)
    }
    #[inline(always)]
    fn from_i64(value: i64) -> Self {
        Bool::from(value != 0)
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        f32::from(self.0)
    }
    #[inline(always)]
    fn to_f64(self) -> f64 {
        f64::from(self.0)
    }
    #[inline(always)]
    fn to_i64(self) -> i64 {
        i64::from(self.0)
    }
    #[inline(always)]
    fn truth(self) -> bool {
        self.0 != 0
    }
    #[inline(always)]
    fn is_nan(self) -> bool {
        false
    }
}

/// Inference keeps bool out of the operations that have no meaning for it; what stands here for
/// them only has to exist.
impl Number for Bool {
    const ZERO: Self = Bool(0);
    const ONE: Self = Bool(1);
    const LOWEST: Self = Bool(0);
    const HIGHEST: Self = Bool(1);
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Bool(self.0 | other.0)
    }
    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        Bool(self.0 ^ other.0)
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Bool(self.0 & other.0)
    }
    #[inline(always)]
    fn floor_divide(self, other: Self) -> Self {
        self.times(other)
    }
    #[inline(always)]
    fn remainder(self, _: Self) -> Self {
        Bool(0)
    }
    #[inline(always)]
    fn power(self, other: Self) -> Self {
        Bool(self.0 | (1 - other.0))
    }
    #[inline(always)]
    fn negative(self) -> Self {
        self
    }
    #[inline(always)]
    fn absolute(self) -> Self {
        self
    }
}

impl Whole for Bool {
    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Bool(self.0 & other.0)
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Bool(self.0 | other.0)
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Bool(self.0 ^ other.0)
    }
    #[inline(always)]
    fn not(self) -> Self {
        Bool(1 - self.0)
    }
}

/// The dtype that values of `dtype` are computed in.
pub fn compute_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) { DType::F32 } else { dtype }
}

/// `$body` with `$T` as the element type of `$dtype`, any of the ten.
macro_rules! with_element {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            gt_ir::DType::F16 => { type $T = half::f16; $body }
            gt_ir::DType::BF16 => { type $T = half::bf16; $body }
            dtype => $crate::element::with_number!(dtype, $T => $body),
        }
    };
}

/// `$body` with `$T` as the element type of `$dtype`, one that is computed in.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            gt_ir::DType::Bool => {
                type $T = $crate::element::Bool;
                $body
            }
            gt_ir::DType::U8 => {
                type $T = u8;
                $body
            }
            gt_ir::DType::I8 => {
                type $T = i8;
                $body
            }
            gt_ir::DType::I16 => {
                type $T = i16;
                $body
            }
            gt_ir::DType::I32 => {
                type $T = i32;
                $body
            }
            gt_ir::DType::I64 => {
                type $T = i64;
                $body
            }
            gt_ir::DType::F32 => {
                type $T = f32;
                $body
            }
            gt_ir::DType::F64 => {
                type $T = f64;
                $body
            }
            gt_ir::DType::F16 | gt_ir::DType::BF16 => {
                unreachable!("16-bit floats are computed as float32")
            }
        }
    };
}

/// `$body` with `$T` as an unsigned integer of `$size` bytes: for what only moves elements.
macro_rules! with_bits {
    ($size:expr, $T:ident => $body:expr) => {
        match $size {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}

pub(crate) use {with_bits, with_element, with_number};
