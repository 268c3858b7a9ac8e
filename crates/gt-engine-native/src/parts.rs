//! Functions of the parts of numbers: signs, truncation, remainders, bits, neighbouring floats, and
//! common divisors. They correspond to `gt_ir::ops::parts`.

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

use crate::binary::{self, Binary};
use crate::cast;
use crate::element::{Bool, compute_dtype};
use crate::kernel::ByDType;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::unary::Unary;
use crate::uninit::Uninit;

pub struct Trunc;
pub struct SignBit;
pub struct Fmod;
pub struct CopySign;
pub struct NextAfter;
pub struct Fmax;
pub struct Fmin;
pub struct Gcd;
pub struct Lcm;
pub struct ShiftLeft;
pub struct ShiftRight;

/// Implements the functions of floats. `max` and `min` of a NaN and a number are the number.
macro_rules! floats {
    ($($T:ty, $next:path;)*) => { $(
        impl Unary<$T> for Trunc {
            #[inline(always)]
            fn at(x: $T) -> $T { x.trunc() }
        }
        impl Unary<$T, Bool> for SignBit {
            #[inline(always)]
            fn at(x: $T) -> Bool { Bool::from(x.is_sign_negative()) }
        }
        impl Binary<$T> for Fmod {
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T { a % b }
        }
        impl Binary<$T> for CopySign {
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T { a.copysign(b) }
        }
        impl Binary<$T> for NextAfter {
            #[inline]
            fn at(a: $T, b: $T) -> $T { $next(a, b) }
        }
        impl Binary<$T> for Fmax {
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T { a.max(b) }
        }
        impl Binary<$T> for Fmin {
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T { a.min(b) }
        }
    )* };
}

floats! {
    f32, libm::nextafterf;
    f64, libm::nextafter;
}

macro_rules! integers {
    ($($T:ty: $negative:expr;)*) => { $(
        impl Unary<$T, Bool> for SignBit {
            #[inline(always)]
            fn at(x: $T) -> Bool { Bool::from(($negative)(x)) }
        }
        impl Binary<$T> for Fmod {
            // A zero divisor was reported before; the lowest number divided by -1 overflows.
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T { if b == 0 { 0 } else { a.wrapping_rem(b) } }
        }
        impl Binary<$T> for Fmax {
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T { a.max(b) }
        }
        impl Binary<$T> for Fmin {
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T { a.min(b) }
        }
        impl Binary<$T> for Gcd {
            #[inline]
            fn at(a: $T, b: $T) -> $T { divisor(i128::from(a), i128::from(b)) as $T }
        }
        impl Binary<$T> for Lcm {
            #[inline]
            fn at(a: $T, b: $T) -> $T {
                let divisor = divisor(i128::from(a), i128::from(b));
                if divisor == 0 { 0 } else { (i128::from(a) / divisor * i128::from(b)).unsigned_abs() as $T }
            }
        }
        impl Binary<$T> for ShiftLeft {
            // As in PyTorch, a shift beyond the width yields 0.
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T {
                let fits = (0..<$T>::BITS as i64).contains(&i64::from(b));
                if fits { a.wrapping_shl(b as u32) } else { 0 }
            }
        }
        impl Binary<$T> for ShiftRight {
            #[inline(always)]
            fn at(a: $T, b: $T) -> $T {
                let most = <$T>::BITS as i64 - 1;
                let places = if (0..=most).contains(&i64::from(b)) { i64::from(b) } else { most };
                let shifted = a.wrapping_shr(places as u32);
                if <$T>::MIN == 0 && !(0..=most).contains(&i64::from(b)) { 0 } else { shifted }
            }
        }
    )* };
}

integers! {
    u8: |_| false;
    i8: |x: i8| x < 0;
    i16: |x: i16| x < 0;
    i32: |x: i32| x < 0;
    i64: |x: i64| x < 0;
}

/// Returns the greatest common divisor (Euclid).
fn divisor(mut a: i128, mut b: i128) -> i128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

impl Unary<Bool, Bool> for SignBit {
    #[inline(always)]
    fn at(_: Bool) -> Bool {
        Bool::from(false)
    }
}

macro_rules! of_bool {
    ($($name:ident: |$a:ident, $b:ident| $body:expr;)*) => { $(
        impl Binary<Bool> for $name {
            #[inline(always)]
            fn at($a: Bool, $b: Bool) -> Bool { $body }
        }
    )* };
}

of_bool! {
    Fmod: |a, _b| a;
    Fmax: |a, b| if a > b { a } else { b };
    Fmin: |a, b| if a < b { a } else { b };
    Gcd: |a, b| if a > b { a } else { b };
    Lcm: |a, b| if a < b { a } else { b };
    ShiftLeft: |a, _b| a;
    ShiftRight: |a, _b| a;
}

static FMOD: ByDType = binary::numbers::<Fmod>();

pub fn fmod(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    binary::check_divisor(threads, &mut operands, output)?;
    binary::compute(threads, &FMOD, operands, output)
}

/// Splits numbers into mantissas and exponents.
pub fn frexp(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let dtype = compute_dtype(x.dtype());
    let x = cast::to(threads, x, DType::F64)?.contiguous()?;
    let mut mantissas = Uninit::new(Meta::new(DType::F64, outputs[0].shape))?;
    let mut exponents = Uninit::new(outputs[1])?;
    let slots = mantissas.slots::<f64>().iter_mut().zip(exponents.slots::<i32>());
    for (x, (mantissa, exponent)) in x.as_slice::<f64>().iter().zip(slots) {
        let (m, e) = libm::frexp(*x);
        mantissa.write(m);
        exponent.write(if x.is_finite() { e } else { 0 });
    }
    // SAFETY: every element of both has been written, as they are as many as those of x.
    let (mantissas, exponents) = unsafe { (mantissas.finish(), exponents.finish()) };
    let mantissas = cast::to(threads, mantissas, dtype)?;
    Ok(vec![cast::to(threads, mantissas, outputs[0].dtype)?, exponents])
}
