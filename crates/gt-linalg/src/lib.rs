//! Linear algebra and Fourier transforms of GT's own engine: functions of slices.
//!
//! - [`MatrixElement`]: factorizations of matrices and the systems that they solve, for `f32`, `f64` and
//!   complex numbers of either; over `matrices`, which calls faer.
//! - [`fourier`]: discrete Fourier transforms of rows, over rustfft and realfft.
//!
//! This crate knows neither tensors nor operations: gt-engine-native splits tensors into matrices and rows, and
//! runs them on its threads. It is apart from the engine because it takes as long to compile as all of the engine's
//! kernels together: its libraries are generic, and every instantiation is made here, in the implementations of
//! [`MatrixElement`] and [`fourier::Float`], so that a change of a kernel does not compile them again.

pub mod fourier;
mod matrices;
mod number;

pub use matrices::{Triangle, Unsolved, Vectors};
pub use number::MatrixElement;
