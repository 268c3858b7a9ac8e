//! Floats as element types: float32 and float64 with arithmetic, the 16-bit floats without.

use gt_ir::DType;
use half::{bf16, f16};

use super::{Element, Number};

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
            /// Divides by way of the exact remainder, as Python and PyTorch do.
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

macro_rules! sixteen_bit_floats {
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

sixteen_bit_floats!(f16 => F16, bf16 => BF16);
