//! Bessel functions of orders 0 and 1.
//!
//! At infinity they return NaN, as in PyTorch, although the limit is 0.

fn finite(x: f64, function: fn(f64) -> f64) -> f64 {
    if x.is_infinite() { f64::NAN } else { function(x) }
}

/// Computes J0, of the first kind (DLMF 10.2); error 4e-16 of the oscillation's amplitude. NaN at
/// infinities.
pub fn j0(x: f64) -> f64 {
    finite(x, libm::j0)
}

/// Computes J1, of the first kind; error 5e-16 of the oscillation's amplitude. NaN at infinities.
pub fn j1(x: f64) -> f64 {
    finite(x, libm::j1)
}

/// Computes Y0, of the second kind; error 5e-16 of the oscillation's amplitude. -infinity at 0, NaN
/// below 0 and at infinity.
pub fn y0(x: f64) -> f64 {
    finite(x, libm::y0)
}

/// Computes Y1, of the second kind; error 5e-16 of the oscillation's amplitude. -infinity at 0, NaN
/// below 0 and at infinity.
pub fn y1(x: f64) -> f64 {
    finite(x, libm::y1)
}

/// Computes the spherical function j0, sin(x) / x (DLMF 10.49.3); error 2e-16.
pub fn spherical_bessel_j0(x: f64) -> f64 {
    if x == 0.0 {
        1.0
    } else if x.is_infinite() {
        0.0
    } else {
        x.sin() / x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::check::each;

    #[test]
    fn oscillating_functions_agree() {
        each(
            "j0",
            j0,
            1e-14,
            &[
                (1.0e-5, 0.999_999_999_975),
                (-0.5, 0.938_469_807_240_812_9),
                (2.5, -0.048_383_776_468_198),
                (7.7, 0.234_559_139_586_464_38),
                (100.0, 0.019_985_850_304_223_122),
                (1_000_000.0, 0.000_331_043_013_739_873_76),
                (1_000_000_000_000_000.0, 6.156_638_646_885_021e-9),
                (0.0, 1.0),
                (f64::INFINITY, f64::NAN),
                (f64::NEG_INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "j1",
            j1,
            1e-14,
            &[
                (1.0e-5, 4.999_999_999_937_5e-6),
                (-0.5, -0.242_268_457_674_873_9),
                (2.5, 0.497_094_102_464_274_05),
                (7.7, 0.181_312_715_324_588),
                (100.0, -0.077_145_352_014_112_16),
                (1_000_000.0, -0.000_725_968_356_813_763),
                (1_000_000_000_000_000.0, 2.446_866_512_377_132_8e-8),
                (0.0, 0.0),
                (f64::INFINITY, f64::NAN),
                (f64::NEG_INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "y0",
            y0,
            1e-14,
            &[
                (1.0e-100, -146.660_924_070_994_24),
                (0.5, -0.444_518_733_506_706_56),
                (2.5, 0.498_070_359_615_231_9),
                (7.7, 0.165_801_632_423_896_5),
                (100.0, -0.077_244_313_365_083_15),
                (1_000_000.0, -0.000_725_968_522_335_179_1),
                (1_000_000_000_000_000.0, 2.446_866_512_377_132_4e-8),
                (0.0, f64::NEG_INFINITY),
                (-1.0, f64::NAN),
                (f64::INFINITY, f64::NAN),
                (f64::NEG_INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "y1",
            y1,
            1e-14,
            &[
                (1.0e-100, -6.366_197_723_675_813e99),
                (0.5, -1.471_472_392_670_243),
                (2.5, 0.145_918_137_966_785_8),
                (7.7, -0.224_318_474_343_008_14),
                (100.0, -0.020_372_312_002_759_792),
                (1_000_000.0, -0.000_331_043_376_724_176_26),
                (1_000_000_000_000_000.0, -6.156_638_646_885_01e-9),
                (0.0, f64::NEG_INFINITY),
                (-1.0, f64::NAN),
                (f64::INFINITY, f64::NAN),
                (f64::NEG_INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "spherical_bessel_j0",
            spherical_bessel_j0,
            1e-15,
            &[
                (1.0e-200, 1.0),
                (1.0e-5, 0.999_999_999_983_333_3),
                (0.4, 0.973_545_855_771_626_2),
                (-3.0, 0.047_040_002_686_622_41),
                (1_000_000.0, -3.499_935_021_712_929_6e-7),
                (0.0, 1.0),
                (f64::INFINITY, 0.0),
                (f64::NEG_INFINITY, 0.0),
                (f64::NAN, f64::NAN),
            ],
        );
    }
}
