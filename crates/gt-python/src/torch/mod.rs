//! What `gt.torch` stands on: GT's tensors as PyTorch's, on the device `cluster`.
//!
//! A tensor of PyTorch on this device is an ordinary `torch.Tensor`. Its storage has no memory: the
//! address is a number that names one of GT's tensors, and sizes, strides and offset are PyTorch's.
//!
//! - [`dlpack`]: how tensors pass to and from PyTorch, without a copy.
//! - [`storage`]: storages, by address.
//! - [`exchange`]: reading what a tensor of PyTorch's shows, writing to it, and making one.
//! - [`caller`]: who issues what a kernel issues.
//! - [`views`]: the operators that views are made of, by PyTorch's interface [`stable`].
//! - [`kernel`]: functions of GT's as kernels of PyTorch's operators; [`arguments`] and
//!   [`operands`]: what they are called with; [`results`]: what they give; [`programs`]: what they
//!   have issued, to be issued again, by the [`places`] of what comes up several times; [`side`]:
//!   what they need of PyTorch's.
//! - [`step`]: steps of optimizers, which take place together.
//! - [`extension`]: kernels that are called without Python, where the part in C++ is built.

mod api;
mod arguments;
mod cluster_tensor;
mod dlpack;
mod extension;
mod interner;
mod kernel;
mod kernel_cache;
mod operands;
mod results;
mod stable_abi;
mod step;
mod storage;
mod thread_context;
mod views;

use pyo3::prelude::*;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let torch = PyModule::new(module.py(), "torch_device")?;
    torch.add_class::<kernel::TorchKernel>()?;
    torch.add_class::<step::StorageStep>()?;
    torch.add_function(wrap_pyfunction!(cluster_tensor::setup, &torch)?)?;
    torch.add_function(wrap_pyfunction!(views::register_views, &torch)?)?;
    torch.add_function(wrap_pyfunction!(extension::connect_extension, &torch)?)?;
    torch.add_function(wrap_pyfunction!(extension::register_repeated, &torch)?)?;
    torch.add_function(wrap_pyfunction!(cluster_tensor::read, &torch)?)?;
    torch.add_function(wrap_pyfunction!(cluster_tensor::write, &torch)?)?;
    torch.add_function(wrap_pyfunction!(cluster_tensor::wrap, &torch)?)?;
    torch.add_function(wrap_pyfunction!(cluster_tensor::blank, &torch)?)?;
    torch.add_function(wrap_pyfunction!(storage::allocated, &torch)?)?;
    torch.add_function(wrap_pyfunction!(storage::peak, &torch)?)?;
    torch.add_function(wrap_pyfunction!(storage::forget_peak, &torch)?)?;
    torch.add_function(wrap_pyfunction!(storage::fill_storage, &torch)?)?;
    torch.add_function(wrap_pyfunction!(storage::copy_storage, &torch)?)?;
    torch.add_function(wrap_pyfunction!(storage::storage_content, &torch)?)?;
    module.add_submodule(&torch)
}
