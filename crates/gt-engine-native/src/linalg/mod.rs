//! Linear algebra operations: convert the tensors of an operation to matrices for `gt-linalg`.
//!
//! - [`operations`] has factorizations.
//! - [`systems`] has systems of equations, and row permutations.
//! - [`batch`] splits tensors into matrices, which threads process independently.

mod batch;
pub mod operations;
pub mod systems;
