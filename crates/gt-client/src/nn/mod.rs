//! Modules and losses for Rust programs; Python's `gt.nn` offers the same.

mod linear;
mod loss;

pub use linear::Linear;
pub use loss::{binary_cross_entropy, cross_entropy_loss, mse_loss};

use crate::tensor::Tensor;

/// A module: a function of a tensor with parameters.
pub trait Module {
    /// Computes the module's function of `input`.
    fn forward(&self, input: &Tensor) -> crate::Result<Tensor>;

    /// Returns the tensors that training changes.
    fn parameters(&self) -> Vec<Tensor>;
}
