//! Modified Bessel functions of orders 0 and 1.

use spec_math::cephes64;

/// Beyond this exp(x) overflows before i0(x) does.
const LARGE: f64 = 700.0;

/// Returns a function, given its product with exp(-|x|).
fn unscaled(scaled: f64, x: f64) -> f64 {
    let half = (0.5 * x.abs()).exp();
    scaled * half * half
}

/// Computes I0, of the first kind (DLMF 10.25); error 1e-15. NaN at infinities.
pub fn i0(x: f64) -> f64 {
    if x.abs() > LARGE { unscaled(i0e(x), x) } else { cephes64::i0(x) }
}

/// Returns exp(-|x|) I0(x). Error 1e-15.
pub fn i0e(x: f64) -> f64 {
    cephes64::i0e(x)
}

/// Computes I1, of the first kind; error 2e-15. NaN at infinities.
pub fn i1(x: f64) -> f64 {
    if x.abs() > LARGE { unscaled(i1e(x), x) } else { cephes64::i1(x) }
}

/// Returns exp(-|x|) I1(x). Error 2e-15.
pub fn i1e(x: f64) -> f64 {
    cephes64::i1e(x)
}

/// Computes K0, of the second kind; error 2e-15. Infinite at 0, NaN below.
pub fn k0(x: f64) -> f64 {
    cephes64::k0(x)
}

/// Returns exp(x) K0(x), PyTorch's scaled_modified_bessel_k0. Error 2e-15.
pub fn k0e(x: f64) -> f64 {
    cephes64::k0e(x)
}

/// Computes K1, of the second kind; error 1e-15. Infinite at 0, NaN below.
pub fn k1(x: f64) -> f64 {
    cephes64::k1(x)
}

/// Returns exp(x) K1(x), PyTorch's scaled_modified_bessel_k1. Error 1e-15.
pub fn k1e(x: f64) -> f64 {
    cephes64::k1e(x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::check::each;

    #[test]
    fn modified_functions_agree() {
        each(
            "i0",
            i0,
            2e-15,
            &[
                (1.0e-5, 1.000_000_000_025),
                (-3.0, 4.880_792_585_865_024_5),
                (8.1, 469.500_606_710_121_5),
                (100.0, 1.073_751_707_131_073_8e42),
                (712.0, 2.468_411_057_762_752_3e307),
                (1.0e20, f64::INFINITY),
                (f64::INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "i1",
            i1,
            2e-15,
            &[
                (1.0e-5, 5.000_000_000_062_500_4e-6),
                (-3.0, -3.953_370_217_402_609_3),
                (8.1, 439.484_308_910_358_44),
                (100.0, 1.068_369_390_338_162_5e42),
                (712.0, 2.466_677_013_524_615_3e307),
                (1.0e20, f64::INFINITY),
                (f64::INFINITY, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "i0e",
            i0e,
            2e-15,
            &[
                (1.0e-5, 0.999_990_000_074_999_6),
                (-3.0, 0.243_000_354_161_825_4),
                (7.9, 0.144_369_864_141_041_91),
                (100.0, 0.039_944_379_299_096_68),
                (10_000_000_000.0, 3.989_422_804_064_194_5e-6),
                (f64::INFINITY, 0.0),
                (f64::NEG_INFINITY, 0.0),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "i1e",
            i1e,
            2e-15,
            &[
                (1.0e-5, 4.999_950_000_312_499e-6),
                (-3.0, -0.196_826_713_297_300_86),
                (7.9, 0.134_896_499_439_893_76),
                (100.0, 0.039_744_153_025_130_25),
                (10_000_000_000.0, 3.989_422_803_864_723e-6),
                (f64::INFINITY, 0.0),
                (f64::NEG_INFINITY, 0.0),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "k0",
            k0,
            2e-15,
            &[
                (1.0e-100, 230.374_440_815_062_97),
                (0.5, 0.924_419_071_227_665_9),
                (1.9, 0.128_845_979_276_047_5),
                (2.1, 0.100_783_740_889_966_93),
                (600.0, 1.355_828_530_994_852_3e-262),
                (0.0, f64::INFINITY),
                (f64::INFINITY, 0.0),
                (-1.0, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "k1",
            k1,
            2e-15,
            &[
                (1.0e-100, 1.0e100),
                (0.5, 1.656_441_120_003_301),
                (1.9, 0.159_660_153_032_667_62),
                (2.1, 0.122_746_411_533_507_89),
                (600.0, 1.356_957_918_112_806e-262),
                (0.0, f64::INFINITY),
                (f64::INFINITY, 0.0),
                (-1.0, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "k0e",
            k0e,
            2e-15,
            &[
                (0.001, 7.030_716_002_378_251),
                (0.5, 1.524_109_385_773_909_4),
                (2.1, 0.823_017_152_531_662_1),
                (20.0, 0.278_544_876_657_182_25),
                (10_000_000_000.0, 1.253_314_137_299_833_9e-5),
                (0.0, f64::INFINITY),
                (f64::INFINITY, 0.0),
                (-1.0, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
        each(
            "k1e",
            k1e,
            2e-15,
            &[
                (0.001, 1_000.996_734_559_068_4),
                (0.5, 2.731_009_708_211_786),
                (2.1, 1.002_368_052_740_579_2),
                (20.0, 0.285_425_496_940_726_44),
                (10_000_000_000.0, 1.253_314_137_362_499_6e-5),
                (0.0, f64::INFINITY),
                (f64::INFINITY, 0.0),
                (-1.0, f64::NAN),
                (f64::NAN, f64::NAN),
            ],
        );
    }
}
