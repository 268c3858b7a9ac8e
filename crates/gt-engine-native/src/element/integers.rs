//! Integers as element types: arithmetic wraps around on overflow.

use gt_ir::DType;

use super::{Element, Number, Whole};

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
            /// Returns 0 for a zero divisor, which callers report before.
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
            /// Returns 0 for a negative exponent, unless the base is 1 or -1, as in PyTorch.
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
