//! Special functions of float64, with PyTorch's results at poles, infinities and NaN; results for
//! float32 are computed from them.
//!
//! - [`gamma`]: lgamma, digamma, polygamma, over [`zeta`](mod@zeta).
//! - [`incomplete`] over [`uniform`]: igamma, igammac.
//! - [`erf`](mod@erf): the error functions and the normal distribution; [`entropy`]: x log y.
//! - [`bessel`], [`modified`] and [`airy`].
//!
//! Most are those of `libm` (FreeBSD's) and `spec_math` (Cephes, as in PyTorch). Functions that are
//! accurate in neither are implemented here, by formulas of the DLMF (<https://dlmf.nist.gov>)
//! cited with them. The errors stated are the largest relative errors over some thousands of
//! points, compared with mpmath.

mod airy;
mod bessel;
mod entropy;
mod erf;
mod gamma;
mod incomplete;
mod modified;
mod uniform;
mod zeta;

pub use airy::airy_ai;
pub use bessel::{j0, j1, spherical_bessel_j0, y0, y1};
pub use entropy::{entr, times_log};
pub use erf::{erfc, erfcx, erfinv, log_ndtr, ndtri};
pub use gamma::{digamma, lgamma, polygamma};
pub use incomplete::{igamma, igammac};
pub use modified::{i0, i0e, i1, i1e, k0, k0e, k1, k1e};
pub use zeta::zeta;

#[cfg(test)]
mod check {
    /// Fails unless `got` is `want` up to the relative error `limit`; NaN equals NaN.
    #[track_caller]
    pub fn close(name: &str, got: f64, want: f64, limit: f64) {
        let same = got == want || (got.is_nan() && want.is_nan());
        let error = ((got - want) / want).abs();
        assert!(same || error <= limit, "{name}: {got:e} instead of {want:e}, error {error:e}");
    }

    #[track_caller]
    pub fn each(name: &str, function: fn(f64) -> f64, limit: f64, cases: &[(f64, f64)]) {
        for &(x, want) in cases {
            close(&format!("{name}({x:e})"), function(x), want, limit);
        }
    }

    #[track_caller]
    pub fn pairs(name: &str, function: fn(f64, f64) -> f64, limit: f64, cases: &[(f64, f64, f64)]) {
        for &(x, y, want) in cases {
            close(&format!("{name}({x:e}, {y:e})"), function(x, y), want, limit);
        }
    }
}
