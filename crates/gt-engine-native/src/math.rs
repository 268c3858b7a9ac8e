//! Elementary functions of floats.
//!
//! The functions of float32 are polynomials without branches, so that loops over them are
//! vectorized; where float32 itself would lose digits they are computed in float64. Errors are
//! within 2.5 units in the last place (tested). They use fused multiply-add, one instruction on
//! processors since 2013; on older ones it is slow, with the same results. The functions of float64
//! are those of the system.

use std::f32::consts::LOG2_E;

use crate::element::Number;

/// Functions of floats only.
pub trait Float: Number {
    const HALF: Self;

    fn exp(self) -> Self;
    fn log(self) -> Self;
    fn log1p(self) -> Self;
    fn expm1(self) -> Self;
    fn sqrt(self) -> Self;
    fn sin(self) -> Self;
    fn cos(self) -> Self;
    fn erf(self) -> Self;
    fn tanh(self) -> Self;
    fn divide(self, other: Self) -> Self;

    #[inline(always)]
    fn sigmoid(self) -> Self {
        Self::ONE.divide(Self::ONE.plus(self.negative().exp()))
    }

    /// Computes log(1 + exp(x)) without overflow.
    #[inline(always)]
    fn softplus(self) -> Self {
        let rest = self.absolute().negative().exp().log1p();
        self.larger(Self::ZERO).plus(rest)
    }

    #[inline(always)]
    fn gelu(self) -> Self {
        let scaled = self.times(Self::from_f64(std::f64::consts::FRAC_1_SQRT_2));
        self.times(Self::HALF).times(scaled.erf().plus(Self::ONE))
    }

    /// Computes the tanh approximation of gelu (Hendrycks and Gimpel, 2016).
    #[inline(always)]
    fn gelu_tanh(self) -> Self {
        let cubic = self.times(self).times(Self::from_f64(0.044_715)).plus(Self::ONE);
        let scaled = self.times(cubic).times(Self::from_f64(0.797_884_560_802_865_4));
        self.times(Self::HALF).times(scaled.tanh().plus(Self::ONE))
    }
}

impl Float for f64 {
    const HALF: f64 = 0.5;

    fn exp(self) -> f64 {
        self.exp()
    }
    fn log(self) -> f64 {
        self.ln()
    }
    fn log1p(self) -> f64 {
        self.ln_1p()
    }
    fn expm1(self) -> f64 {
        self.exp_m1()
    }
    #[inline(always)]
    fn sqrt(self) -> f64 {
        self.sqrt()
    }
    fn sin(self) -> f64 {
        self.sin()
    }
    fn cos(self) -> f64 {
        self.cos()
    }
    fn erf(self) -> f64 {
        libm::erf(self)
    }
    fn tanh(self) -> f64 {
        self.tanh()
    }
    #[inline(always)]
    fn divide(self, other: f64) -> f64 {
        self / other
    }
}

impl Float for f32 {
    const HALF: f32 = 0.5;

    #[inline(always)]
    fn exp(self) -> f32 {
        exp(self)
    }
    #[inline(always)]
    fn log(self) -> f32 {
        log(self)
    }
    #[inline(always)]
    fn log1p(self) -> f32 {
        log1p(self)
    }
    #[inline(always)]
    fn expm1(self) -> f32 {
        expm1(self)
    }
    #[inline(always)]
    fn sqrt(self) -> f32 {
        self.sqrt()
    }
    #[inline(always)]
    fn sin(self) -> f32 {
        sin_shifted(self, 0)
    }
    #[inline(always)]
    fn cos(self) -> f32 {
        sin_shifted(self, 1)
    }
    #[inline(always)]
    fn erf(self) -> f32 {
        erf(self)
    }
    #[inline(always)]
    fn tanh(self) -> f32 {
        tanh(self)
    }
    #[inline(always)]
    fn divide(self, other: f32) -> f32 {
        self / other
    }
}

/// Adding this rounds a small float32 to an integer, which is then in the low bits.
const ROUND: f32 = 12_582_912.0;
/// The same for float64.
const ROUND64: f64 = 6_755_399_441_055_744.0;

/// Decomposes e^x into 2^n (1 + q), with |q| at most about 0.4; returns q and n. The polynomial is
/// that of Cephes.
#[inline(always)]
fn exp_parts(x: f32) -> (f32, i32) {
    let shifted = x.mul_add(LOG2_E, ROUND);
    let n = shifted - ROUND;
    // ln 2 is split into two parts; the first times n is exact.
    let r = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, x));
    let mut p = 1.987_569_1e-4f32;
    p = p.mul_add(r, 1.398_199_9e-3);
    p = p.mul_add(r, 8.333_452e-3);
    p = p.mul_add(r, 4.166_579_6e-2);
    p = p.mul_add(r, 1.666_666_5e-1);
    p = p.mul_add(r, 0.5);
    (p.mul_add(r * r, r), (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32))
}

/// Computes e^x. Below -104, where it is at most half the smallest subnormal, the result is 0:
/// arithmetic on subnormals takes processors a hundred times as long.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // NaN fails both comparisons and propagates.
    let vanishes = x < -104.0;
    let x = if vanishes { 0.0 } else { x };
    let x = if x > 89.0 { 89.0 } else { x };
    let (q, n) = exp_parts(x);
    // 2^n as two factors: results are correct down to the smallest subnormal.
    let half = n >> 1;
    let y = (q + 1.0) * power_of_two(half) * power_of_two(n.wrapping_sub(half));
    if vanishes { 0.0 } else { y }
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

#[inline(always)]
fn expm1(x: f32) -> f32 {
    let x64 = f64::from(x);
    let x64 = if x64 < -110.0 { -110.0 } else { x64 };
    let x64 = if x64 > 100.0 { 100.0 } else { x64 };
    let shifted = x64.mul_add(std::f64::consts::LOG2_E, ROUND64);
    let r = x64 - (shifted - ROUND64) * std::f64::consts::LN_2;
    // The Taylor series of e^r - 1.
    let mut p = 1.0f64 / 40_320.0;
    for factor in [1.0 / 5_040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0] {
        p = p.mul_add(r, factor);
    }
    let n = shifted.to_bits().wrapping_sub(ROUND64.to_bits());
    let scale = f64::from_bits(n.wrapping_add(1023) << 52);
    // The series maps -0 to 0.
    if x == 0.0 { x } else { (scale * (p * r) + (scale - 1.0)) as f32 }
}

/// Computes the logarithm of a positive, normal number to about 10 digits, by the series of artanh.
#[inline(always)]
fn log64(x: f64) -> f64 {
    let bits = x.to_bits();
    let mantissa = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    let above = mantissa > std::f64::consts::SQRT_2;
    let m = if above { mantissa * 0.5 } else { mantissa };
    let exponent = (bits >> 52) as i32 - if above { 1022 } else { 1023 };
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut p = 1.0f64 / 11.0;
    for factor in [1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        p = p.mul_add(z, factor);
    }
    2.0 * s * p + f64::from(exponent) * std::f64::consts::LN_2
}

/// Computes the logarithm by the polynomial of Cephes around 1.
#[inline(always)]
fn log(x: f32) -> f32 {
    // Subnormal numbers are scaled into the normal range first.
    let small = x < f32::MIN_POSITIVE;
    let bits = (if small { x * 8_388_608.0 } else { x }).to_bits();
    let mantissa = f32::from_bits(bits & ((1 << 23) - 1) | 127 << 23);
    let above = mantissa > std::f32::consts::SQRT_2;
    let exponent = (bits >> 23) as i32 - if above { 126 } else { 127 } - if small { 23 } else { 0 };
    let (r, n) = (if above { mantissa * 0.5 } else { mantissa } - 1.0, exponent as f32);
    let mut p = 7.037_683_6e-2f32;
    for factor in [
        -1.151_461e-1,
        1.167_699_9e-1,
        -1.242_014_1e-1,
        1.424_932_3e-1,
        -1.666_805_8e-1,
        2.000_071_5e-1,
        -2.499_999_4e-1,
        3.333_333e-1,
    ] {
        p = p.mul_add(r, factor);
    }
    let z = r * r;
    let rest = n.mul_add(-2.121_944_4e-4, (p * r) * z);
    special_log(x, n.mul_add(0.693_359_4, z.mul_add(-0.5, rest) + r))
}

/// Replaces the logarithm at 0, at infinity and for negative numbers.
#[inline(always)]
fn special_log(x: f32, inside: f32) -> f32 {
    let y = if x > 0.0 { inside } else { f32::NAN };
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    if x == f32::INFINITY { x } else { y }
}

#[inline(always)]
fn log1p(x: f32) -> f32 {
    let x64 = f64::from(x);
    let above = 1.0 + x64;
    // The ratio corrects what the rounded sum lost (Kahan).
    let kept = above - 1.0;
    let y = if kept == 0.0 { x } else { (log64(above) * (x64 / kept)) as f32 };
    let y = special_log(above as f32, y);
    if x == 0.0 { x } else { y }
}

/// Computes sin(x + quarters * pi/2). It is inaccurate beyond [`FAR`]: kernels compute such numbers
/// otherwise.
#[inline(always)]
fn sin_shifted(x: f32, quarters: i64) -> f32 {
    let x64 = f64::from(x);
    let shifted = x64.mul_add(std::f64::consts::FRAC_2_PI, ROUND64);
    let n = shifted - ROUND64;
    // pi/2 is split into two parts; the first times n is exact (fdlibm).
    let r = n.mul_add(-6.077_100_506_506_192e-11, n.mul_add(-1.570_796_326_734_125_6, x64));
    let z = r * r;
    let mut sine = 1.0f64 / 362_880.0;
    for factor in [-1.0 / 5_040.0, 1.0 / 120.0, -1.0 / 6.0, 1.0] {
        sine = sine.mul_add(z, factor);
    }
    let mut cosine = -1.0f64 / 3_628_800.0;
    for factor in [1.0 / 40_320.0, -1.0 / 720.0, 1.0 / 24.0, -0.5, 1.0] {
        cosine = cosine.mul_add(z, factor);
    }
    let n = (shifted.to_bits() as i64).wrapping_add(quarters);
    let y = if n & 1 == 0 { sine * r } else { cosine };
    // -0 is preserved, as the sine of a vanishing r is r itself.
    (if n & 2 == 0 { y } else { -y }) as f32
}

/// Up to this number the arguments of sine and cosine are reduced exactly.
pub const FAR: f32 = 1.0e6;

/// Computes erf by a polynomial near 0, and as 1 - e^-q(x) with a polynomial q elsewhere. Both were
/// fitted for the least relative error; beyond 4, erf is 1 in float32.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let size = x.abs();
    let z = x * x;
    let mut near = -6.000_455e-4f32;
    for factor in [4.995_052e-3, -2.676_788_6e-2, 1.128_185_1e-1, -3.761_249_7e-1, 1.283_791_5e-1] {
        near = near.mul_add(z, factor);
    }
    let t = if size > 4.0 { 4.0 } else { size };
    let mut q = 1.123_183_7e-5f32;
    for factor in
        [-3.228_054_3e-4, 3.642_454_6e-3, -2.376_204e-2, 1.062_368_5e-1, 6.351_513e-1, 1.128_648_5]
    {
        q = q.mul_add(t, factor);
    }
    let (e, n) = exp_parts(-(q * t));
    let scale = power_of_two(n);
    let far = 1.0 - e.mul_add(scale, scale);
    if size < 0.92 { near.mul_add(x, x) } else { far.copysign(x) }
}

/// Computes tanh as (e^2x - 1) / (e^2x + 1), where e^2x - 1 loses no digits near 0.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let size = x.abs();
    // Beyond this, tanh is 1 in float32.
    let t = if size > 9.1 { 9.1 } else { size };
    let (q, n) = exp_parts(t + t);
    let scale = power_of_two(n);
    let above = q.mul_add(scale, scale - 1.0);
    (above / (above + 2.0)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the largest error of `f` in units in the last place, over many floats of
    /// `low..high`.
    fn worst(f: fn(f32) -> f32, exact: fn(f64) -> f64, low: f32, high: f32) -> f64 {
        let mut worst = 0.0f64;
        for i in 0..=200_000 {
            let x = low + (high - low) * (i as f32 / 200_000.0);
            let want = exact(f64::from(x));
            let rounded = want as f32;
            let unit =
                f64::from(f32::from_bits(rounded.abs().to_bits() + 1)) - f64::from(rounded.abs());
            let error = (f64::from(f(x)) - want).abs() / unit;
            assert!(error < 100.0, "{x}: {} instead of {want}", f(x));
            worst = worst.max(error);
        }
        worst
    }

    #[test]
    fn errors_are_within_bounds() {
        let check = |name, f, exact, low, high, limit| {
            let error = worst(f, exact, low, high);
            assert!(error <= limit, "{name}: {error} units in the last place");
        };
        check("exp", Float::exp, f64::exp, -87.0, 88.0, 2.0);
        check("exp", Float::exp, f64::exp, -1.0, 1.0, 2.0);
        check("log", Float::log, f64::ln, 1e-5, 3.0, 1.5);
        check("log", Float::log, f64::ln, 3.0, 1e30, 1.5);
        check("log1p", Float::log1p, f64::ln_1p, -0.99, 3.0, 1.0);
        check("log1p", Float::log1p, f64::ln_1p, -1e-9, 1e-9, 1.0);
        check("expm1", Float::expm1, f64::exp_m1, -20.0, 80.0, 1.0);
        check("expm1", Float::expm1, f64::exp_m1, -1e-6, 1e-6, 1.0);
        check("sin", Float::sin, f64::sin, -10.0, 10.0, 1.0);
        check("sin", Float::sin, f64::sin, 9.0e5, 1.0e6, 1.0);
        check("cos", Float::cos, f64::cos, -10.0, 10.0, 1.0);
        check("erf", Float::erf, libm::erf, -5.0, 5.0, 2.0);
        check("tanh", Float::tanh, f64::tanh, -10.0, 10.0, 2.5);
        check("sigmoid", Float::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), -80.0, 20.0, 2.5);
    }

    #[test]
    fn special_values_are_exact() {
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        let check = |f: fn(f32) -> f32, x: f32, want: f32| {
            let got = f(x);
            assert!(got == want || got.is_nan() && want.is_nan(), "{x}: {got} for {want}");
        };
        for f in [Float::exp, Float::log, Float::tanh, Float::erf, Float::sin, Float::expm1] {
            let f: fn(f32) -> f32 = f;
            check(f, nan, nan);
        }
        check(Float::exp, inf, inf);
        check(Float::exp, 88.8, inf);
        check(Float::exp, -inf, 0.0);
        check(Float::exp, -100.0, (-100.0f32).exp());
        check(Float::exp, -103.9, f32::from_bits(1));
        check(Float::exp, -1e9, 0.0);
        check(Float::log, 0.0, -inf);
        check(Float::log, -1.0, nan);
        check(Float::log, inf, inf);
        check(Float::log, 1e-40, (1e-40f32).ln());
        check(Float::log1p, -1.0, -inf);
        check(Float::log1p, -2.0, nan);
        check(Float::log1p, inf, inf);
        check(Float::expm1, inf, inf);
        check(Float::expm1, -inf, -1.0);
        check(Float::tanh, inf, 1.0);
        check(Float::tanh, -inf, -1.0);
        check(Float::erf, inf, 1.0);
        check(Float::sigmoid, -inf, 0.0);
        check(Float::softplus, 200.0, 200.0);
        check(Float::softplus, -inf, 0.0);
    }
}
