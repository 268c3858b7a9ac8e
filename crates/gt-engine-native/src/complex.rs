//! Kernels that differ between complex and real numbers: functions, absolute values, signs,
//! quotients, and the conversion between complex numbers and their parts.
//!
//! Functions are computed in complex128 and rounded, so the results of complex64 are exact to the
//! last place or nearly so.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, Meta};
use gt_worker::EngineError;
use num_complex::{Complex64, ComplexFloat};

use crate::binary::Binary;
use crate::cast::runs;
use crate::element::{Complex, Element};
use crate::kernel::{ByDType, Kernel};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::unary::Unary;

/// Defines functions of one complex number.
macro_rules! unary {
    ($($name:ident => |$x:ident| $body:expr;)*) => { $(
        pub struct $name;

        impl Unary<Complex<f32>> for $name {
            #[inline]
            fn at(x: Complex<f32>) -> Complex<f32> {
                <$name as Unary<Complex<f64>>>::at(x.cast()).cast()
            }
        }

        impl Unary<Complex<f64>> for $name {
            #[inline]
            fn at(x: Complex<f64>) -> Complex<f64> {
                let $x = Complex64::from(x);
                Complex64::from($body).into()
            }
        }
    )* };
}

unary! {
    Conj => |x| x.conj();
    Sgn => |x| if x == Complex64::ZERO { x } else { x / x.abs() };
    Exp => |x| x.exp();
    Log => |x| x.ln();
    Log1p => |x| log1p(x);
    Expm1 => |x| expm1(x);
    Sqrt => |x| x.sqrt();
    Rsqrt => |x| x.sqrt().inv();
    Sin => |x| x.sin();
    Cos => |x| x.cos();
    Tan => |x| over_i(tanh(times_i(x)));
    Asin => |x| over_i(asinh(times_i(x)));
    Acos => |x| acos(x);
    Atan => |x| over_i(atanh(times_i(x)));
    Sinh => |x| x.sinh();
    Cosh => |x| x.cosh();
    Tanh => |x| tanh(x);
    Asinh => |x| asinh(x);
    Acosh => |x| acosh(x);
    Atanh => |x| atanh(x);
    Log2 => |x| x.ln() / std::f64::consts::LN_2;
    Log10 => |x| x.ln() / std::f64::consts::LN_10;
    Exp2 => |x| (x * std::f64::consts::LN_2).exp();
    Sigmoid => |x| ((-x).exp() + 1.0).inv();
    Silu => |x| x / ((-x).exp() + 1.0);
}

fn times_i(x: Complex64) -> Complex64 {
    Complex64::new(-x.im, x.re)
}

fn over_i(x: Complex64) -> Complex64 {
    Complex64::new(x.im, -x.re)
}

/// Computes log(1 + x), accurate near 0: the modulus by log1p of |1 + x|^2 - 1.
fn log1p(x: Complex64) -> Complex64 {
    let length = if x.re.abs() < 0.5 && x.im.abs() < 0.5 {
        0.5 * (x.re * (2.0 + x.re) + x.im * x.im).ln_1p()
    } else {
        (x + 1.0).abs().ln()
    };
    Complex64::new(length, x.im.atan2(1.0 + x.re))
}

/// Computes exp(x) - 1, accurate near 0: e^a cos b - 1 is expm1(a) cos b - 2 sin(b / 2)^2.
fn expm1(x: Complex64) -> Complex64 {
    let half = (0.5 * x.im).sin();
    let re = x.re.exp_m1() * x.im.cos() - 2.0 * half * half;
    Complex64::new(re, x.re.exp() * x.im.sin())
}

/// Computes tanh by Kahan's formula (see [`asinh`]) from tan b and sinh a. Far from 0, where the
/// square of sinh a overflows, the real part is 1.
fn tanh(x: Complex64) -> Complex64 {
    if x.re.abs() > 20.0 {
        let rest = 4.0 * (-2.0 * x.re.abs()).exp() * x.im.sin() * x.im.cos();
        return Complex64::new(1.0f64.copysign(x.re), rest);
    }
    let (tan, sinh) = (x.im.tan(), x.re.sinh());
    let (slope, cosh) = (1.0 + tan * tan, x.re.cosh());
    let below = 1.0 + slope * sinh * sinh;
    Complex64::new(slope * cosh * sinh / below, tan / below)
}

/// Computes asinh by W. Kahan, "Branch cuts for complex elementary functions", 1987: the parts of
/// asin(z) are atan(x / Re(sqrt(1 - z) sqrt(1 + z))) and asinh(Im(conj(sqrt(1 - z)) sqrt(1 + z))).
fn asinh(x: Complex64) -> Complex64 {
    // asinh(x) = i asin(x / i)
    let z = over_i(x);
    let (low, high) = ((1.0 - z).sqrt(), (1.0 + z).sqrt());
    let asin = Complex64::new(z.re.atan2((low * high).re), libm::asinh((low.conj() * high).im));
    times_i(asin)
}

/// Computes acos by Kahan's formula: 2 atan(Re sqrt(1 - z) / Re sqrt(1 + z)) and
/// asinh(Im(conj(sqrt(1 + z)) sqrt(1 - z))).
fn acos(z: Complex64) -> Complex64 {
    let (low, high) = ((1.0 - z).sqrt(), (1.0 + z).sqrt());
    Complex64::new(2.0 * low.re.atan2(high.re), libm::asinh((high.conj() * low).im))
}

/// Computes acosh by Kahan's formula: asinh(Re(conj(sqrt(z - 1)) sqrt(z + 1))) and
/// 2 atan(Im sqrt(z - 1) / Re sqrt(z + 1)).
fn acosh(z: Complex64) -> Complex64 {
    let (low, high) = ((z - 1.0).sqrt(), (z + 1.0).sqrt());
    Complex64::new(libm::asinh((low.conj() * high).re), 2.0 * low.im.atan2(high.re))
}

/// Computes atanh as (log1p(z) - log1p(-z)) / 2.
fn atanh(z: Complex64) -> Complex64 {
    (log1p(z) - log1p(-z)) * 0.5
}

/// The quotient of complex numbers.
pub struct Div;

impl Binary<Complex<f32>> for Div {
    #[inline]
    fn at(a: Complex<f32>, b: Complex<f32>) -> Complex<f32> {
        <Div as Binary<Complex<f64>>>::at(a.cast(), b.cast()).cast()
    }
}

impl Binary<Complex<f64>> for Div {
    /// Divides by the larger part of the divisor first, so that no square overflows (R. L. Smith,
    /// 1962).
    #[inline]
    fn at(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
        if b.re.abs() >= b.im.abs() {
            if b.re == 0.0 {
                return Complex { re: a.re / b.re, im: a.im / b.re };
            }
            let ratio = b.im / b.re;
            let below = b.re + b.im * ratio;
            Complex { re: (a.re + a.im * ratio) / below, im: (a.im - a.re * ratio) / below }
        } else {
            let ratio = b.re / b.im;
            let below = b.re * ratio + b.im;
            Complex { re: (a.re * ratio + a.im) / below, im: (a.im * ratio - a.re) / below }
        }
    }
}

/// Adds the kernels of absolute values, whose results are floats.
pub const fn with_lengths(mut kernels: ByDType) -> ByDType {
    // SAFETY: `lengths` reads a run of complex numbers and writes a run of floats of their parts'
    // type.
    unsafe {
        kernels[gt_ir::DType::C64 as usize] =
            Some(Kernel::new::<Complex<f32>, f32>(lengths::<f32>, 1));
        kernels[gt_ir::DType::C128 as usize] =
            Some(Kernel::new::<Complex<f64>, f64>(lengths::<f64>, 1));
    }
    kernels
}

/// # Safety
/// As for [`Kernel::run`].
unsafe fn lengths<T>(inputs: &[*const u8; 3], out: *mut u8, n: usize)
where
    T: Copy,
    num_complex::Complex<T>: ComplexFloat<Real = T> + From<Complex<T>>,
{
    // SAFETY: the contract of kernels.
    let (from, to): (&[Complex<T>], &mut [MaybeUninit<T>]) = unsafe { runs(inputs[0], out, n) };
    for (to, from) in to.iter_mut().zip(from) {
        to.write(num_complex::Complex::from(*from).abs());
    }
}

/// Reinterprets the memory as another dtype: complex numbers as pairs of floats, or the reverse.
pub fn reinterpret(
    _: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    tensor(&mut operands, 0)?.contiguous()?.reinterpret(output)
}
