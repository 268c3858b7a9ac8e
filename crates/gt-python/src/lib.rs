//! The Python module `gt._gt`. It converts between Python's values and the client's, and decides
//! nothing.
//!
//! - [`tensor`]: the class `Tensor`; [`create`]: functions that make tensors.
//! - [`operation`]: operations as functions and methods, from their declarations.
//! - [`convert`]: Python numbers, lists, axes and shapes; [`array`]: NumPy arrays; [`export`]: values for Python.
//! - [`session`]: sessions, which one a thread uses, connecting, waiting.
//! - [`network`]: servers, workers and keys; [`engine`]: engines that are Python objects.
//! - [`autograd`], [`vmap`], [`signal`], [`debug`], [`dtype`]: what the Python modules of these names use.
//! - [`tools`]: looking at a dispatcher: status, traces, pictures.
//! - [`files`]: tensors in safetensors files.
//! - [`torch`]: tensors as PyTorch's, on a device of its own.
//! - [`error`]: the client's errors as Python exceptions; [`source`]: the user's current line.

// PyO3's generated wrappers are unsafe functions whose bodies call others like them.
#![allow(unsafe_op_in_unsafe_fn)]

mod array;
mod autograd;
mod config;
mod convert;
mod create;
mod debug;
mod dtype;
mod engine;
mod error;
mod export;
mod files;
mod network;
mod notice;
mod number;
mod operation;
mod session;
mod signal;
mod source;
mod tensor;
mod tools;
mod torch;
mod transaction;
mod vmap;

use pyo3::prelude::*;

#[pymodule]
fn _gt(module: &Bound<'_, PyModule>) -> PyResult<()> {
    gt::logging::start();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<tensor::PyTensor>()?;
    dtype::register(module)?;
    operation::register(module)?;
    engine::native::register(module)?;
    create::register(module)?;
    session::register(module)?;
    network::register(module)?;
    autograd::register(module)?;
    transaction::register(module)?;
    vmap::register(module)?;
    signal::register(module)?;
    config::register(module)?;
    debug::register(module)?;
    source::register(module)?;
    crate::number::register(module)?;
    tools::register(module)?;
    files::register(module)?;
    torch::register(module)?;
    error::register(module)?;
    session::fork::complete_first_uses(module.py())
}
