//! The Airy function.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// From here on the asymptotic expansion has full precision.
const LARGE: f64 = 9.0;
/// From here on the function is 0 in float64.
const ZERO: f64 = 104.0;

/// Computes the Airy function Ai (DLMF 9.2); error 8e-15, for x < 0 relative to the oscillation's
/// amplitude. NaN at infinities, as in PyTorch.
pub fn airy_ai(x: f64) -> f64 {
    if x.is_infinite() {
        f64::NAN
    } else if x.abs() < LARGE || x.is_nan() {
        spec_math::cephes64::airy(x).0
    } else if x > ZERO {
        0.0
    } else {
        far(x)
    }
}

/// Computes Ai(x) for large |x| (DLMF 9.7.5 and 9.7.9). zeta = 2/3 |x|^(3/2) is split into two
/// parts, as exp, sin and cos need more digits of it than a float64 has.
fn far(x: f64) -> f64 {
    const TWO_THIRDS: f64 = 2.0 / 3.0;
    // 2/3 exceeds its float64 by this, as the binary digits continue 0101...
    const REST: f64 = TWO_THIRDS * f64::EPSILON / 4.0;
    let size = x.abs();
    let root = size.sqrt();
    let root_rest = (-root).mul_add(root, size) / (2.0 * root);
    let power = size * root;
    let power_rest = size.mul_add(root, -power) + size * root_rest;
    let zeta = power * TWO_THIRDS;
    let zeta_rest = power.mul_add(TWO_THIRDS, -zeta) + power * REST + power_rest * TWO_THIRDS;

    let height = 0.5 * FRAC_2_SQRT_PI / root.sqrt();
    if x > 0.0 {
        let (even, odd) = series(zeta, 1.0);
        return 0.5 * height * (-zeta).exp() * (1.0 - zeta_rest) * (even - odd);
    }
    let (even, odd) = series(zeta, -1.0);
    let (sin, cos) = zeta.sin_cos();
    let (sin_rest, cos_rest) = zeta_rest.sin_cos();
    let (sin, cos) = (sin * cos_rest + cos * sin_rest, cos * cos_rest - sin * sin_rest);
    // Sine and cosine of zeta - pi/4.
    height * FRAC_1_SQRT_2 * ((cos + sin) * even + (sin - cos) * odd)
}

/// Returns the sums of u(k) / zeta^k (DLMF 9.7.2) over even and over odd k, each with alternating
/// signs if `sign` is -1.
fn series(zeta: f64, sign: f64) -> (f64, f64) {
    let (mut even, mut odd) = (0.0, 0.0);
    let (mut term, mut k) = (1.0, 0.0);
    while f64::abs(term) > 0.1 * f64::EPSILON {
        even += term;
        term *= ratio(k + 1.0) / zeta;
        odd += term;
        term *= sign * ratio(k + 2.0) / zeta;
        k += 2.0;
    }
    (even, odd)
}

/// Returns u(k) / u(k - 1).
fn ratio(k: f64) -> f64 {
    (6.0 * k - 5.0) * (6.0 * k - 1.0) / (72.0 * k)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::check::each;

    #[test]
    fn airy_ai_agrees() {
        each(
            "airy_ai",
            airy_ai,
            1e-14,
            &[
                (-1_000_000_000_000.0, -0.000_429_218_360_706_976_96),
                (-1_000_000.0, -0.002_191_261_141_343_057_4),
                (-123.456, -0.148_295_146_459_490_63),
                (-9.0, -0.022_133_721_547_341_403),
                (-8.9, -0.117_266_306_371_751_81),
                (-4.2, 0.089_210_763_239_450_72),
                (-2.0, 0.227_407_428_201_685_58),
                (-1.0e-5, 0.355_030_642_081_855_1),
                (0.0, 0.355_028_053_887_817_2),
                (0.3, 0.278_806_481_955_004_9),
                (2.0, 0.034_924_130_423_274_38),
                (2.2, 0.025_610_404_421_773_213),
                (8.9, 3.342_061_042_518_7e-9),
                (9.0, 2.471_168_430_872_49e-9),
                (30.0, 3.208_217_591_550_495_4e-49),
                (103.0, 1.956_232_022_933_922_3e-304),
                (105.0, 0.0),
                (1.0e300, 0.0),
                (f64::INFINITY, f64::NAN),
                (f64::NEG_INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
    }
}
