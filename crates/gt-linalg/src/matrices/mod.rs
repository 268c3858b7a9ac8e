//! Factorizations of matrices, and what they solve.
//!
//! All functions take one matrix as a slice, row after row, of `f32`, `f64` or a complex number of
//! either ([`MatrixScalar`]); what runs over batches runs outside, on as many threads as it likes. The
//! results are those of LAPACK, packed in its way: [`lu`], [`qr`] and [`ldl`] also have its signs.
//!
//! - [`scalar`] and [`layout`]: numbers, and matrices by columns, as the algorithms want them.
//! - [`cholesky`], [`triangular`], [`svd`], [`eigh`] and [`eig`] call faer, which runs on the
//!   calling thread here; `eig` stands on [`balance`] and [`inverse`].
//! - [`lu`] and [`qr`] over [`reflectors`] are written out, as faer's differ from LAPACK's where a
//!   matrix has dependent columns; their products are faer's. So is [`ldl`].

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

/// Why an iteration towards singular values or eigenvalues has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsolved {
    /// An element of the matrix is infinite or not a number.
    NotFinite,
    /// The iteration does not converge.
    NotConverged,
}
