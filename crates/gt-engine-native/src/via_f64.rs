//! Functions that are computed in float64 for all dtypes, so that the results of float32 are exact
//! to the last place.

use gt_ir::instruction::Operands;
use gt_ir::operation::int;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

use crate::binary::Binary;
use crate::cast;
use crate::repeats;
use crate::special;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::unary::Unary;
use crate::uninit::Uninit;

/// Defines functions of one float.
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
    Erfc => special::erfc;
    Erfinv => special::erfinv;
    Lgamma => special::lgamma;
    Digamma => special::digamma;
    Erfcx => special::erfcx;
    Ndtri => special::ndtri;
    LogNdtr => special::log_ndtr;
    I0 => special::i0;
    I0e => special::i0e;
    I1 => special::i1;
    I1e => special::i1e;
    J0 => special::j0;
    J1 => special::j1;
    Y0 => special::y0;
    Y1 => special::y1;
    K0 => special::k0;
    K1 => special::k1;
    K0e => special::k0e;
    K1e => special::k1e;
    SphericalBesselJ0 => special::spherical_bessel_j0;
    AiryAi => special::airy_ai;
    Entr => special::entr;
}

/// Defines functions of two floats.
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
    Igamma => special::igamma;
    Igammac => special::igammac;
    Zeta => special::zeta;
    Xlogy => |x, y| special::times_log(x, y, f64::ln);
    Xlog1py => |x, y| special::times_log(x, y, f64::ln_1p);
}

/// Computes a derivative of digamma; the attribute is its order.
pub fn polygamma(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let n = int(attributes, 0);
    let x = repeats::distinct_of(tensor(&mut operands, 0)?);
    let x = cast::to(threads, x, DType::F64)?.contiguous()?;
    let mut out = Uninit::new(x.meta())?;
    for (x, out) in x.as_slice::<f64>().iter().zip(out.slots::<f64>()) {
        out.write(special::polygamma(n, *x));
    }
    // SAFETY: every element has been written, as there are as many as of x.
    Ok(cast::to(threads, unsafe { out.finish() }, output.dtype)?.expand(&output.shape))
}
