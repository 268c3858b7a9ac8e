//! Linear algebra as operations: from the tensors of an operation to matrices for `gt-linalg`.
//!
//! - [`operations`]: factorizations; [`systems`]: systems of equations, and orders of rows.
//! - [`batch`]: the matrices of a tensor, a thread for each.

mod batch;
pub mod operations;
pub mod systems;
