//! Linear algebra and Fourier transforms for the native engine, as functions of slices.
//!
//! - [`MatrixElement`]: factorizations of matrices and solutions of systems, for `f32`, `f64` and
//!   complex numbers of either; over `matrices`, which calls faer.
//! - [`fourier`]: discrete Fourier transforms of rows, over rustfft and realfft.
//!
//! This crate must know neither tensors nor operations: gt-engine-native splits tensors into
//! matrices and rows, and calls it from its threads. It is a crate of its own because it takes as
//! long to compile as all of the engine's kernels: the libraries are generic, and every
//! instantiation is made here, in the implementations of [`MatrixElement`] and
//! [`fourier::FourierFloat`], so that a change of a kernel does not compile them again.

pub mod fourier;
mod matrices;
mod number;

pub use matrices::{Triangle, Unsolved, Vectors};
pub use number::MatrixElement;
