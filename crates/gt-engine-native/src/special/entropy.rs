//! Products of a number and a logarithm, as in entropies.

/// `x log(y)` with a logarithm of `y`: NaN where `y` is, and otherwise 0 where `x` is.
pub fn times_log(x: f64, y: f64, log: fn(f64) -> f64) -> f64 {
    if y.is_nan() {
        return y;
    }
    if x == 0.0 { 0.0 } else { x * log(y) }
}

/// `-x log(x)`: 0 at 0, and minus infinity below.
pub fn entr(x: f64) -> f64 {
    if x > 0.0 {
        -x * x.ln()
    } else if x < 0.0 {
        f64::NEG_INFINITY
    } else if x == 0.0 {
        0.0
    } else {
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::special::check::{each, pairs};

    #[test]
    fn zero_times_a_logarithm_is_zero_unless_it_is_nan() {
        let (infinity, nan) = (f64::INFINITY, f64::NAN);
        pairs(
            "xlogy",
            |x, y| times_log(x, y, f64::ln),
            1e-15,
            &[
                (0.0, 0.0, 0.0),
                (0.0, -1.0, 0.0),
                (0.0, infinity, 0.0),
                (0.0, nan, nan),
                (nan, 1.0, nan),
                (2.0, 0.0, -infinity),
                (2.0, -1.0, nan),
                (2.0, 3.0, 2.1972245773362196),
            ],
        );
        pairs(
            "xlog1py",
            |x, y| times_log(x, y, f64::ln_1p),
            1e-15,
            &[(0.0, -1.0, 0.0), (2.0, -1.0, -infinity), (3.0, 1e-20, 3e-20)],
        );
    }

    #[test]
    fn the_entropy_is_zero_at_zero_and_infinite_below() {
        let (infinity, nan) = (f64::INFINITY, f64::NAN);
        let cases = [
            (0.0, 0.0),
            (1.0, 0.0),
            (-1.0, -infinity),
            (infinity, -infinity),
            (nan, nan),
            (2.0, -1.3862943611198906),
        ];
        each("entr", entr, 1e-15, &cases);
    }
}
