//! The Hurwitz zeta function.

use spec_math::cephes64;

/// Computes Hurwitz' zeta(s, q), the sum of (q + k)^-s over k = 0, 1, ... (DLMF 25.11.1); error
/// 1e-15, for q < 0 relative to the largest term.
///
/// As in PyTorch: infinite at s = 1 and where q is 0, -1, ...; NaN for s < 1, for other q < 0
/// unless s is an integer, and at infinities where the limit is 0.
pub fn zeta(s: f64, q: f64) -> f64 {
    if s > 1.0 && q > 1.0 && (s.is_infinite() || q.is_infinite()) {
        return f64::NAN;
    }
    let reflects = q < 0.0 && q != q.floor() && s > 1.0 && s == s.floor() && s.is_finite();
    if reflects { negative(s, q) } else { positive(s, q) }
}

/// Computes zeta by Euler and Maclaurin's formula (DLMF 25.11.28).
fn positive(s: f64, q: f64) -> f64 {
    let value = cephes64::zeta(s, q);
    let finite = 1.0 < s && s < f64::INFINITY && 0.0 < q && q < f64::INFINITY;
    // Cephes returns NaN if all terms underflow.
    if value.is_nan() && finite { 0.0 } else { value }
}

/// Computes zeta for an integer s and q < 0: the terms with q + k < 0, mirrored, are the difference
/// of two zetas.
fn negative(s: f64, q: f64) -> f64 {
    let sign = if s % 2.0 == 0.0 { 1.0 } else { -1.0 };
    let largest = positive(s, q - q.floor()) + sign * positive(s, q.ceil() - q);
    largest - sign * positive(s, 1.0 - q)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::check::pairs;

    #[test]
    fn zeta_agrees() {
        pairs(
            "zeta",
            zeta,
            1e-14,
            &[
                (1.000_001, 0.5, 1_000_001.963_593_646_1),
                (1.5, 1.0e-5, 31_622_779.214_039_017),
                (2.0, 1.0, 1.644_934_066_848_226_4),
                (2.0, 1_000_000_000.0, 1.000_000_000_5e-9),
                (3.0, 0.25, 64.663_869_968_768_47),
                (4.5, 7.3, 0.000_343_620_522_133_469_8),
                (40.0, 659.5, 2.967_148_103_661_148e-112),
                (60.0, 0.01, 9.999_999_999_999_987e119),
                (12.0, 3.5, 3.119_511_988_435_483_5e-7),
                (2.0, -1.5, 9.379_246_644_989_124),
                (3.0, -1.5, 0.118_102_025_820_863_7),
                (3.0, -100.75, 62.012_602_132_463_19),
                (6.0, -0.1, 1_000_001.905_011_667_3),
                (1.0, 2.0, f64::INFINITY),
                (1.0, f64::NAN, f64::INFINITY),
                (0.5, 2.0, f64::NAN),
                (-2.0, 1.0, f64::NAN),
                (2.0, 0.0, f64::INFINITY),
                (2.5, -4.0, f64::INFINITY),
                (2.5, -1.5, f64::NAN),
                (f64::INFINITY, 1.0, 1.0),
                (f64::INFINITY, 0.5, f64::INFINITY),
                (f64::INFINITY, -1.5, f64::INFINITY),
                (f64::INFINITY, 2.0, f64::NAN),
                (2.0, f64::INFINITY, f64::NAN),
                (f64::NAN, 2.0, f64::NAN),
                (2.0, f64::NAN, f64::NAN),
                (2.0, f64::NEG_INFINITY, f64::INFINITY),
                (400.0, 10.0, 0.0),
                (2.0, 1.0e300, 1.0e-300),
            ],
        );
    }
}
