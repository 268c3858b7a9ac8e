//! The extension module `gt._gt`: Python bindings of the client (`gt`), the server and worker
//! processes, and the diagnostic tools (`gt-tools`).
//!
//! It converts between Python objects and Rust values, manages the GIL, forks and process exit, and
//! records the user's source lines. It makes no scheduling or sharding decisions, and knows neither
//! the wire format nor the instruction rules of single operations.
//!
//! - [`tensor`]: the class `Tensor`; [`create`]: functions that create tensors.
//! - [`operation`]: primitives as functions and methods, generated from their declarations.
//! - [`argument`]: arguments by kind, and the errors about others.
//! - [`convert`], [`number`], [`array`]: Python numbers, lists, shapes and NumPy arrays as Rust
//!   values; [`export`]: Rust values as Python objects; [`dtype`]: the class `dtype`.
//! - [`session`]: the session that a thread uses; connecting, waiting, forks, process exit.
//! - [`network`]: server and worker processes, and keys; [`interrupt`]: until a signal arrives.
//! - [`engine`]: engines that are implemented in Python.
//! - [`autograd`], [`vmap`], [`signal`], [`config`], [`debug`]: functions behind the Python modules
//!   of these names.
//! - [`transaction`]: optimizer steps that commit or roll back as a whole.
//! - [`files`]: tensors in safetensors files and checkpoints.
//! - [`held`]: the tensors that the program holds, for people who watch.
//! - [`status`]: the state of a dispatcher; [`tools`]: its traces, `top` and visualization;
//!   [`operators`]: what operators have a server do; [`recording`]: replays; [`web`]: the page.
//! - [`torch`]: PyTorch's device `cluster`, backed by GT's tensors.
//! - [`error`]: the client's errors as Python exceptions; [`foreign`]: classes of NumPy's and
//!   PyTorch's; [`source`]: the user's source line;
//!   [`public`]: what errors of Python code show; [`notice`]: messages about long waits.

// PyO3 generates unsafe functions whose bodies call other unsafe functions without a block.
#![allow(unsafe_op_in_unsafe_fn)]

mod argument;
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
mod foreign;
mod held;
mod interrupt;
mod network;
mod notice;
mod number;
mod operation;
mod operators;
mod public;
mod recording;
mod session;
mod signal;
mod source;
mod status;
mod tensor;
mod tools;
mod torch;
mod transaction;
mod user_code;
mod vmap;
mod web;

use pyo3::prelude::*;

/// The functions that `gt` exports as they are. Python's errors about the number of their arguments
/// name the module.
const EXPORTED: [&str; 6] =
    ["connect", "disconnect", "from_numpy", "is_grad_enabled", "rescale", "synchronize"];

#[pymodule]
fn _gt(module: &Bound<'_, PyModule>) -> PyResult<()> {
    gt::logging::start();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<tensor::PyTensor>()?;
    dtype::register(module)?;
    operation::register(module)?;
    public::register(module)?;
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
    status::register(module)?;
    operators::register(module)?;
    web::register(module)?;
    recording::register(module)?;
    files::register(module)?;
    held::register();
    torch::register(module)?;
    foreign::register(module)?;
    error::register(module)?;
    for name in EXPORTED {
        module.getattr(name)?.setattr("__module__", "gt")?;
    }
    session::fork::complete_first_uses(module.py())
}
