//! Folding elements into one: the kinds of folds here, the loops of every reduction in [`order`],
//! and in [`pieces`] the same for tensors that have to be written out one piece at a time.

pub mod order;
pub mod pieces;

use crate::element::{Bool, Complex, Element, Number};
pub use order::*;

/// A kind of fold. Elements of a block are folded in their own type, which is fast; blocks are
/// folded in `Total`, which loses no digits.
pub trait Fold<T> {
    type Total: Copy + Send;
    const START: T;
    const START_TOTAL: Self::Total;
    /// Whether runs without NaN are folded faster by [`Fold::push_number`].
    const LOOKS_FOR_NAN: bool = false;

    fn push(folded: T, x: T) -> T;
    /// As [`Fold::push`], if neither is NaN.
    #[inline(always)]
    fn push_number(folded: T, x: T) -> T {
        Self::push(folded, x)
    }
    fn total(total: Self::Total, folded: T) -> Self::Total;
    fn merge(total: Self::Total, other: Self::Total) -> Self::Total;
    /// Returns the result of folding `count` elements.
    fn finish(total: Self::Total, count: usize) -> T;
}

pub struct Sum;
pub struct Mean;
pub struct Product;
pub struct Largest;
pub struct Smallest;
pub struct Any;
pub struct All;

/// Folds whose totals have the elements' type.
macro_rules! with_own_totals {
    ($name:ident for $type:ty, $start:expr, $function:ident) => {
        impl Fold<$type> for $name {
            with_own_totals!(methods $type, $start, $function);
        }
    };
    (methods $type:ty, $start:expr, $function:ident) => {
        type Total = $type;
        const START: $type = $start;
        const START_TOTAL: $type = $start;

        #[inline(always)]
        fn push(folded: $type, x: $type) -> $type {
            folded.$function(x)
        }
        #[inline(always)]
        fn total(total: $type, folded: $type) -> $type {
            total.$function(folded)
        }
        #[inline(always)]
        fn merge(total: $type, other: $type) -> $type {
            total.$function(other)
        }
        #[inline(always)]
        fn finish(total: $type, _: usize) -> $type {
            total
        }
    };
}

/// Maximum and minimum. For numbers each is one instruction, which does not propagate NaN.
macro_rules! extreme {
    ($name:ident, $start:ident, $function:ident, $is_before:tt) => {
        impl<T: Number> Fold<T> for $name {
            with_own_totals!(methods T, T::$start, $function);

            const LOOKS_FOR_NAN: bool = true;

            #[inline(always)]
            fn push_number(folded: T, x: T) -> T {
                if folded $is_before x { folded } else { x }
            }
        }
    };
}

extreme!(Largest, LOWEST, larger, >);
extreme!(Smallest, HIGHEST, smaller, <);
with_own_totals!(Sum for i64, 0, plus);
with_own_totals!(Product for i64, 1, times);
with_own_totals!(Any for Bool, Bool(0), plus);
with_own_totals!(All for Bool, Bool(1), times);

/// Folds of floats whose totals are float64.
macro_rules! with_f64_totals {
    ($($name:ident for $type:ty, $start:expr, $function:ident,
        |$total:ident, $count:ident| $finish:expr;)*) => { $(
        impl Fold<$type> for $name {
            type Total = f64;
            const START: $type = $start;
            const START_TOTAL: f64 = $start;

            #[inline(always)]
            fn push(folded: $type, x: $type) -> $type {
                folded.$function(x)
            }
            #[inline(always)]
            fn total(total: f64, folded: $type) -> f64 {
                total.$function(f64::from(folded))
            }
            #[inline(always)]
            fn merge(total: f64, other: f64) -> f64 {
                total.$function(other)
            }
            #[inline(always)]
            fn finish($total: f64, $count: usize) -> $type {
                $finish as $type
            }
        }
    )* };
}

with_f64_totals! {
    Sum for f32, 0.0, plus, |total, _count| total;
    Sum for f64, 0.0, plus, |total, _count| total;
    Mean for f32, 0.0, plus, |total, count| total / count as f64;
    Mean for f64, 0.0, plus, |total, count| total / count as f64;
    Product for f32, 1.0, times, |total, _count| total;
    Product for f64, 1.0, times, |total, _count| total;
}

/// Folds of complex numbers, whose totals are complex128.
macro_rules! complex {
    ($($name:ident for $type:ty, $start:ident, $function:ident,
        |$total:ident, $count:ident| $finish:expr;)*) => { $(
        impl Fold<$type> for $name {
            type Total = Complex<f64>;
            const START: $type = <$type>::$start;
            const START_TOTAL: Complex<f64> = <Complex<f64>>::$start;

            #[inline(always)]
            fn push(folded: $type, x: $type) -> $type {
                folded.$function(x)
            }
            #[inline(always)]
            fn total(total: Complex<f64>, folded: $type) -> Complex<f64> {
                total.$function(folded.cast())
            }
            #[inline(always)]
            fn merge(total: Complex<f64>, other: Complex<f64>) -> Complex<f64> {
                total.$function(other)
            }
            #[inline(always)]
            fn finish($total: Complex<f64>, $count: usize) -> $type {
                Complex::<f64>::cast($finish)
            }
        }
    )* };
}

complex! {
    Sum for Complex<f32>, ZERO, plus, |total, _count| total;
    Sum for Complex<f64>, ZERO, plus, |total, _count| total;
    Mean for Complex<f32>, ZERO, plus, |total, count| divided(total, count);
    Mean for Complex<f64>, ZERO, plus, |total, count| divided(total, count);
    Product for Complex<f32>, ONE, times, |total, _count| total;
    Product for Complex<f64>, ONE, times, |total, _count| total;
}

fn divided(total: Complex<f64>, count: usize) -> Complex<f64> {
    Complex { re: total.re / count as f64, im: total.im / count as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_survives_folding() {
        let mut x = vec![1.0f32; 200];
        x[130] = f32::NAN;
        assert!(row::<f32, Largest>(&x).is_nan() && row::<f32, Smallest>(&x).is_nan());
        assert!(row::<f32, Sum>(&x).is_nan());
    }

    #[test]
    fn long_sums_keep_full_precision() {
        let x = vec![0.1f32; 10_000_000];
        let sum = row::<f32, Sum>(&x);
        assert!((sum / 1e6 - 1.0).abs() < 1e-6, "{sum}");
    }
}
