//! The error functions and the normal distribution.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

/// The difference between 1 / sqrt(2) and [`FRAC_1_SQRT_2`].
const FRAC_1_SQRT_2_REST: f64 = -4.833_646_656_726_457e-17;

/// Computes 1 - erf(x) without cancellation; error 3e-16.
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}

/// Computes exp(x^2) erfc(x) without overflow for x > 0; error 6e-16. For large x it uses the
/// asymptotic expansion (DLMF 7.12.1).
pub fn erfcx(x: f64) -> f64 {
    if x < 20.0 || x.is_nan() {
        return exp_square(x) * libm::erfc(x);
    }
    let step = -0.5 / (x * x);
    let (mut sum, mut term, mut factor) = (1.0, 1.0, 1.0);
    while f64::abs(term) > f64::EPSILON * 0.1 {
        term *= factor * step;
        sum += term;
        factor += 2.0;
    }
    0.5 * FRAC_2_SQRT_PI / x * sum
}

/// Computes exp(x^2), with a correction for the rounding of the square.
fn exp_square(x: f64) -> f64 {
    let square = x * x;
    let large = square.exp();
    if large.is_infinite() { large } else { large * (1.0 + x.mul_add(x, -square)) }
}

/// Computes the inverse of erf; error 8e-16. Near 0, a Newton step corrects an approximation;
/// elsewhere the complement is exact. NaN outside of -1..1.
pub fn erfinv(y: f64) -> f64 {
    let size = y.abs();
    let inverse = if size >= 0.5 || y.is_nan() {
        -FRAC_1_SQRT_2 * ndtri(0.5 * (1.0 - size))
    } else {
        let x = FRAC_1_SQRT_2 * ndtri(0.5 + 0.5 * size);
        x - (libm::erf(x) - size) * (x * x).exp() / FRAC_2_SQRT_PI
    };
    inverse.copysign(y)
}

/// Computes the normal distribution function, erfc(-x / sqrt(2)) / 2; error 5e-16.
fn ndtr(x: f64) -> f64 {
    let scaled = -x * FRAC_1_SQRT_2;
    let value = libm::erfc(scaled);
    if (1.0..30.0).contains(&scaled) {
        // In the tail, correct for the rounding of the argument, times the derivative.
        let rest = (-x).mul_add(FRAC_1_SQRT_2, -scaled) - x * FRAC_1_SQRT_2_REST;
        return 0.5 * (value - FRAC_2_SQRT_PI * (-scaled * scaled).exp() * rest);
    }
    0.5 * value
}

/// Computes log(ndtr(x)) without underflow; error 5e-16.
pub fn log_ndtr(x: f64) -> f64 {
    if x < -1.0 {
        (0.5 * erfcx(-x * FRAC_1_SQRT_2)).ln() - 0.5 * x * x
    } else if x < 0.0 {
        ndtr(x).ln()
    } else {
        (-ndtr(-x)).ln_1p()
    }
}

/// Computes the inverse of ndtr; error 5e-16. NaN outside of 0..1.
pub fn ndtri(p: f64) -> f64 {
    spec_math::cephes64::ndtri(p)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::check::each;

    #[test]
    fn error_functions_agree() {
        each(
            "erf",
            libm::erf,
            1e-15,
            &[
                (1.0e-10, 1.128_379_167_095_512_6e-10),
                (0.3, 0.328_626_759_459_127_4),
                (-1.2, -0.910_313_978_229_635_3),
                (3.0, 0.999_977_909_503_001_4),
                (f64::INFINITY, 1.0),
                (f64::NEG_INFINITY, -1.0),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "erfc",
            erfc,
            1e-15,
            &[
                (1.0e-10, 0.999_999_999_887_162),
                (-0.3, 1.328_626_759_459_127_4),
                (1.2, 0.089_686_021_770_364_64),
                (9.0, 4.137_031_746_513_81e-37),
                (26.0, 5.663_192_408_856_143e-296),
                (f64::INFINITY, 0.0),
                (f64::NEG_INFINITY, 2.0),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "erfcx",
            erfcx,
            1e-15,
            &[
                (-25.9, 4.266_889_550_504_505_5e291),
                (-3.3, 107_274.435_932_814_36),
                (-1.0e-5, 1.000_011_283_891_671_7),
                (0.0, 1.0),
                (0.7, 0.525_930_337_349_441),
                (6.6, 0.084_534_047_936_099_14),
                (19.9, 0.028_315_573_983_185_766),
                (20.1, 0.028_034_523_526_966_875),
                (500.0, 0.001_128_376_910_350_718_8),
                (1.0e100, 5.641_895_835_477_562_5e-101),
                (-27.0, f64::INFINITY),
                (f64::INFINITY, 0.0),
                (f64::NEG_INFINITY, f64::INFINITY),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "erfinv",
            erfinv,
            1e-15,
            &[
                (1.0e-300, 8.862_269_254_527_58e-301),
                (1.0e-8, 8.862_269_254_527_58e-9),
                (0.2, 0.179_143_454_621_291_7),
                (-0.49, -0.465_868_600_235_057_33),
                (0.51, 0.488_122_050_515_958_8),
                (-0.9, -1.163_087_153_676_674_3),
                (0.999_999, 3.458_910_737_275_499),
                (0.999_999_999_999_999_9, 5.863_584_748_755_167_6),
                (0.0, 0.0),
                (1.0, f64::INFINITY),
                (-1.0, f64::NEG_INFINITY),
                (1.5, f64::NAN),
                (f64::NEG_INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
    }

    #[test]
    fn normal_distribution_agrees() {
        each(
            "ndtr",
            ndtr,
            1e-15,
            &[
                (-37.0, 5.725_571_222_524_577e-300),
                (-20.3, 6.429_244_467_698_346e-92),
                (-5.5, 1.898_956_246_588_771_8e-8),
                (-1.4, 0.080_756_659_233_771_07),
                (-0.3, 0.382_088_577_811_047_4),
                (1.0e-10, 0.500_000_000_039_894_2),
                (0.8, 0.788_144_601_416_603_4),
                (3.0, 0.998_650_101_968_369_9),
                (9.0, 1.0),
                (0.0, 0.5),
                (f64::INFINITY, 1.0),
                (f64::NEG_INFINITY, 0.0),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "log_ndtr",
            log_ndtr,
            1e-15,
            &[
                (-10_000_000_000.0, -5.0e19),
                (-38.6, -749.552_860_846_207_9),
                (-1.01, -1.856_313_062_343_178_5),
                (-0.99, -1.825_810_317_842_812_4),
                (-0.1, -0.776_154_592_730_273_3),
                (0.1, -0.616_505_010_115_026_3),
                (1.3, -0.101_811_802_667_655_04),
                (8.0, -6.220_960_574_271_786e-16),
                (30.0, -4.906_713_927_148_187e-198),
                (-1.0e200, f64::NEG_INFINITY),
                (f64::INFINITY, 0.0),
                (f64::NEG_INFINITY, f64::NEG_INFINITY),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "ndtri",
            ndtri,
            1e-15,
            &[
                (1.0e-300, -37.047_096_299_361_2),
                (1.0e-20, -9.262_340_089_798_407),
                (0.01, -2.326_347_874_040_841),
                (0.14, -1.080_319_340_814_956),
                (0.4, -0.253_347_103_135_799_7),
                (0.6, 0.253_347_103_135_799_7),
                (0.99, 2.326_347_874_040_840_8),
                (0.5, 0.0),
                (0.0, f64::NEG_INFINITY),
                (1.0, f64::INFINITY),
                (-0.1, f64::NAN),
                (1.1, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
    }
}
