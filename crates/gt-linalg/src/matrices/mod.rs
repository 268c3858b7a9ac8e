//! Factorizations of matrices, and solutions of systems.
//!
//! All functions take one matrix as a row-major slice of `f32`, `f64` or complex numbers of either
//! ([`MatrixScalar`]); callers iterate over batches, on as many threads as they like. The results
//! are those of LAPACK, packed in its format: [`lu`], [`qr`] and [`ldl`] also have its signs.
//!
//! - [`scalar`] and [`layout`]: numbers, and conversion to the column-major order of the
//!   algorithms.
//! - [`cholesky`], [`triangular`], [`svd`], [`eigh`] and [`eig`] call faer, here always on the
//!   calling thread; `eig` also uses [`balance`] and [`inverse`].
//! - [`lu`] and [`qr`], over [`reflectors`], are implemented here, as faer's results differ from
//!   LAPACK's for matrices with dependent columns; they multiply with faer. [`ldl`] and
//!   [`ldl_solve`] are implemented here as well.

mod balance;
mod cholesky;
mod eig;
mod eigh;
mod inverse;
mod layout;
mod ldl;
mod ldl_solve;
mod lu;
mod qr;
mod reflectors;
mod scalar;
mod svd;
mod triangular;

#[cfg(test)]
mod check;

pub use cholesky::cholesky;
pub use eig::eig;
pub use eigh::eigh;
pub use ldl::ldl;
pub use ldl_solve::ldl_solve;
pub use lu::lu;
pub use qr::{householder_product, qr};
pub use svd::{Vectors, svd};
pub use triangular::{Triangle, solve_triangular};

/// Why a matrix has no singular values or eigenvalues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsolved {
    /// An element of the matrix is infinite or not a number.
    NotFinite,
    /// The iteration does not converge.
    NotConverged,
}
