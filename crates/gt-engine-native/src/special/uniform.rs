//! The incomplete gamma functions P(a, x) and Q(a, x) for large a and x near a, by a uniform
//! expansion (DLMF 8.12.3, 8.12.4) in eta, with eta^2 / 2 = m - log(1 + m) and m = (x - a) / a.

use std::f64::consts::{FRAC_1_SQRT_2, TAU};

use super::erf::erfcx;

/// From this a on the expansion has full precision, for |eta| up to 1.
pub const FROM: f64 = 12.0;
/// The number of terms: they shrink by 2 sqrt(pi), the distance of the singularities.
const TERMS: usize = 30;

/// Returns eta, with eta^2 / 2 = m - log(1 + m), m = (x - a) / a and the sign of m (DLMF 8.12.1),
/// and a eta^2 / 2.
pub fn deviation(a: f64, x: f64) -> (f64, f64) {
    let difference = x - a;
    let m = difference / a;
    let half = if (-0.71..=1.4).contains(&m) {
        // log(1 + m) = 2 artanh(r), whose first term, 2 r, is m - m r.
        let r = m / (2.0 + m);
        let square = r * r;
        let (mut sum, mut power, mut k) = (0.0, 2.0 * r * square, 3.0);
        while f64::abs(power) > f64::abs(m * r) * (0.1 * f64::EPSILON) {
            sum += power / k;
            power *= square;
            k += 2.0;
        }
        m * r - sum
    } else {
        m - (x / a).ln()
    };
    let mut exponent = a * half;
    if m.abs() < 1.0 {
        // The rounding errors of x - a and of m, times the derivative.
        let taken = if x > a { (x - difference) - a } else { x - (difference + a) };
        exponent += ((-m).mul_add(a, difference) + taken) * m / (1.0 + m);
    }
    ((2.0 * half).sqrt().copysign(m), exponent)
}

/// Computes P and Q as 1/2 erfc(-+ eta sqrt(a / 2)) -+ exp(-a eta^2 / 2) / sqrt(2 pi a) S(eta).
///
/// The derivative of Q by eta is -sqrt(a / 2 pi) exp(-a eta^2 / 2) f(eta) / G, with f = eta / m and
/// G = gamma(a) divided by Stirling's formula. Hence S' - a eta S = a (1 - f / G). With S = sum of
/// b(n) eta^n / G and f = sum of d(n) eta^n, this is b(n-1) = d(n) + (n+1) / a b(n+1) and G = 1 +
/// b(1) / a. The recurrence runs downwards from b(n) = 0 for large n.
pub fn both(a: f64, eta: f64, exponent: f64) -> (f64, f64) {
    let (mut second, mut first, mut sum) = (0.0, 0.0, 0.0);
    let mut last = 0.0;
    for n in (1..TERMS).rev() {
        // second = b(n + 1), first = b(n).
        let next = EXPANSION[n] + (n + 1) as f64 / a * second;
        sum = sum * eta + next;
        (second, first) = (first, next);
        last = second;
    }
    let scaled = sum * a / (a + last) / (TAU * a).sqrt();
    let tail = 0.5 * erfcx(eta.abs() * a.sqrt() * FRAC_1_SQRT_2);
    let decay = (-exponent).exp();
    if eta < 0.0 {
        let p = decay * (tail - scaled);
        (p, 1.0 - p)
    } else {
        let q = decay * (tail + scaled);
        (1.0 - q, q)
    }
}

/// The coefficients d(n) of eta / m.
const EXPANSION: [f64; TERMS] = expansion();

/// Computes d(n). From eta (1 + m) = m m' follow the coefficients c(n) of m by eta: (n + 1) c(n) =
/// c(n - 1) - sum of j c(j) c(n + 1 - j) over 1 < j < n. And eta / m = m' - eta.
const fn expansion() -> [f64; TERMS] {
    let mut c = [0.0; TERMS + 1];
    c[1] = 1.0;
    let mut n = 2;
    while n <= TERMS {
        let mut sum = c[n - 1];
        let mut j = 2;
        while j < n {
            sum -= j as f64 * c[j] * c[n + 1 - j];
            j += 1;
        }
        c[n] = sum / (n + 1) as f64;
        n += 1;
    }
    let mut d = [0.0; TERMS];
    let mut n = 0;
    while n < TERMS {
        d[n] = (n + 1) as f64 * c[n + 1];
        n += 1;
    }
    d[1] -= 1.0;
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_coefficients_match_the_published_ones() {
        // DLMF 8.12.11 and 8.12.13.
        for (n, want) in
            [1.0, -1.0 / 3.0, 1.0 / 12.0, -2.0 / 135.0, 1.0 / 864.0].into_iter().enumerate()
        {
            assert!((EXPANSION[n] - want).abs() < 1e-16);
        }
    }
}
