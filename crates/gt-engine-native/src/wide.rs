//! Functions that are computed in float64, whatever the dtype: those of float32 are then right to the
//! last place.

use crate::binary::Binary;
use crate::unary::Unary;

/// Names functions of one float.
macro_rules! unary {
    ($($name:ident => $function:expr;)*) => { $(
        pub struct $name;

        impl Unary<f32> for $name {
            #[inline]
            fn at(x: f32) -> f32 {
                ($function)(f64::from(x)) as f32
            }
        }

        impl Unary<f64> for $name {
            #[inline]
            fn at(x: f64) -> f64 {
                ($function)(x)
            }
        }
    )* };
}

unary! {
    Tan => f64::tan;
    Asin => f64::asin;
    Acos => f64::acos;
    Atan => f64::atan;
    Sinh => f64::sinh;
    Cosh => f64::cosh;
    Asinh => libm::asinh;
    Acosh => f64::acosh;
    Atanh => libm::atanh;
    Log2 => f64::log2;
    Log10 => f64::log10;
    Exp2 => f64::exp2;
}

/// Names functions of two floats.
macro_rules! binary {
    ($($name:ident => $function:expr;)*) => { $(
        pub struct $name;

        impl Binary<f32> for $name {
            #[inline]
            fn at(a: f32, b: f32) -> f32 {
                ($function)(f64::from(a), f64::from(b)) as f32
            }
        }

        impl Binary<f64> for $name {
            #[inline]
            fn at(a: f64, b: f64) -> f64 {
                ($function)(a, b)
            }
        }
    )* };
}

binary! {
    Atan2 => f64::atan2;
    Hypot => f64::hypot;
}
