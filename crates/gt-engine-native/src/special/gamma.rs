//! Functions derived from the gamma function.

use std::f64::consts::PI;

use super::zeta;

/// Computes log |gamma(x)|; error 4e-16, absolute near the zeros at negative x.
pub fn lgamma(x: f64) -> f64 {
    libm::lgamma(x)
}

/// Computes the derivative of log gamma(x), by reflection for x < 0 (DLMF 5.5.4); error 2e-15,
/// absolute near the zeros. NaN at -1, -2, ..., and an infinity of the opposite sign at 0 and -0,
/// as in PyTorch.
pub fn digamma(x: f64) -> f64 {
    if x >= 0.0 || x.is_nan() || x == x.floor() {
        return spec_math::cephes64::psi(x);
    }
    spec_math::cephes64::psi(1.0 - x) - PI / (PI * (x - x.round())).tan()
}

/// Computes the n-th derivative of digamma, (-1)^(n+1) n! zeta(n + 1, x) (DLMF 5.15.1, 25.11.12);
/// error 3e-15, larger only near the zeros at negative x. NaN for n < 0. Infinite at 0, -1, ...;
/// PyTorch agrees for n > 1, but for n = 1 it returns a large number.
pub fn polygamma(n: i64, x: f64) -> f64 {
    match n {
        ..0 => f64::NAN,
        0 => digamma(x),
        // As in PyTorch; zeta is NaN and infinity there.
        1 if x.is_infinite() => {
            if x > 0.0 {
                0.0
            } else {
                f64::NAN
            }
        }
        _ => {
            let order = n as f64 + 1.0;
            let size = libm::tgamma(order) * zeta(order, x);
            if n % 2 == 0 { -size } else { size }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::check::{close, each};

    #[test]
    fn lgamma_agrees() {
        each(
            "lgamma",
            lgamma,
            1e-14,
            &[
                (1.0e-10, 23.025_850_929_882_736),
                (0.3, 1.095_797_994_818_075_6),
                (1.7, -0.095_807_697_407_065_88),
                (5.25, 3.561_375_910_386_697),
                (40.5, 108.473_075_069_065_39),
                (10_000_000_000.0, 220_258_509_288.810_58),
                (-0.5, 1.265_512_123_484_645_4),
                (-3.5, -1.309_006_684_993_042),
                (-20.3, -41.887_292_480_135_244),
                (1.0, 0.0),
                (0.0, f64::INFINITY),
                (-2.0, f64::INFINITY),
                (f64::INFINITY, f64::INFINITY),
                (f64::NEG_INFINITY, f64::INFINITY),
                (f64::NAN, f64::NAN),
            ],
        );
    }

    #[test]
    fn digamma_agrees() {
        each(
            "digamma",
            digamma,
            1e-14,
            &[
                (1.0e-10, -10_000_000_000.577_215),
                (0.25, -4.227_453_533_376_265_5),
                (1.4, -0.061_384_544_585_116_24),
                (1.5, 0.036_489_973_978_576_52),
                (7.5, 1.946_757_484_246_086_9),
                (100_000.0, 11.512_920_464_961_896),
                (1.0e20, 46.051_701_859_880_914),
                (-1.0e-10, 9_999_999_999.422_785),
                (-0.5, 0.036_489_973_978_576_52),
                (-3.75, -1.692_388_598_311_330_3),
                (-21.988_283_157_348_633, -82.195_597_346_671_53),
                (-900.25, 9.944_820_454_572_687),
                (0.0, f64::NEG_INFINITY),
                (-0.0, f64::INFINITY),
                (-3.0, f64::NAN),
                (f64::INFINITY, f64::INFINITY),
                (f64::NEG_INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
    }

    #[test]
    fn polygamma_agrees() {
        for (n, x, want) in [
            (1, 1.0e-5, 10_000_000_001.644_909),
            (1, 0.5, 4.934_802_200_544_679),
            (1, 3.7, 0.310_037_857_670_038_3),
            (1, 10_000_000_000.0, 1.000_000_000_05e-10),
            (1, -0.3, 13.945_160_267_805_722),
            (1, -9.75, 19.641_724_953_976_865),
            (2, 0.1, -2_001.861_457_378_343_6),
            (2, 12.5, -0.006_932_436_585_788_241),
            (2, -0.25, 122.697_366_783_662_36),
            (3, 4.5, 0.030_322_508_542_366_587),
            (3, -2.2, 3_768.520_540_634_75),
            (4, -100.5, -5.765_411_100_832_097e-8),
            (9, 0.7, 12_848_253.730_810_71),
            (20, 30.0, -4.786_085_204_571_764e-13),
            (0, 1.0, -0.577_215_664_901_532_9),
            (-1, 1.0, f64::NAN),
            (1, 0.0, f64::INFINITY),
            (1, -2.0, f64::INFINITY),
            (2, -2.0, f64::NEG_INFINITY),
            (3, -2.0, f64::INFINITY),
            (1, f64::INFINITY, 0.0),
            (2, f64::INFINITY, f64::NAN),
            (1, f64::NEG_INFINITY, f64::NAN),
            (2, f64::NEG_INFINITY, f64::NEG_INFINITY),
            (1, f64::NAN, f64::NAN),
            (1, 1.0e300, 1.0e-300),
        ] {
            close(&format!("polygamma({n}, {x:e})"), polygamma(n, x), want, 1e-14);
        }
    }
}
