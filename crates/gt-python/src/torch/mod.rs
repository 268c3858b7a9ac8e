//! The core of `gt.torch`: GT's tensors as PyTorch's, on the device `cluster`.
//!
//! A PyTorch tensor on this device is an ordinary `torch.Tensor`. Its storage has no memory: the
//! address is a number that names one of GT's tensors; sizes, strides and offset are PyTorch's.
//!
//! - [`dlpack`]: passing tensors to and from PyTorch without a copy.
//! - [`storage`]: storages, by address.
//! - [`cluster_tensor`]: reading, writing and creating tensors of the device.
//! - [`thread_context`]: the session, line and scope under which a kernel issues instructions.
//! - [`views`]: the operators that create views, by PyTorch's stable interface ([`stable_abi`]).
//! - [`kernel`]: functions of GT as kernels of PyTorch's operators; [`arguments`] and [`operands`]:
//!   their arguments; [`results`]: their results; [`api`]: what they need from PyTorch.
//! - [`kernel_cache`]: recorded kernels, replayed by calls with the same key; [`interner`]: indices
//!   of equal storages and values.
//! - [`step`]: steps of optimizers, which take effect as a whole.
//! - [`extension`]: kernels that are called without Python, if the C++ part is built.

mod api;
mod arguments;
mod cluster_tensor;
mod dlpack;
mod extension;
mod interner;
mod kernel;
pub mod kernel_cache;
mod operands;
mod results;
mod stable_abi;
mod step;
mod storage;
mod thread_context;
mod views;

use gt::tensor::held::HeldValue;
use pyo3::prelude::*;

/// Returns what a tensor of PyTorch's device holds; `None` for other objects.
pub fn held(tensor: &Bound<'_, PyAny>) -> Option<HeldValue> {
    let storage = tensor.call_method0("untyped_storage").ok()?;
    let address: usize = storage.call_method0("data_ptr").ok()?.extract().ok()?;
    Some(storage::value_at(address)?.held())
}

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
    torch.add_function(wrap_pyfunction!(storage::protect_storage, &torch)?)?;
    torch.add_function(wrap_pyfunction!(storage::storage_content, &torch)?)?;
    module.add_submodule(&torch)
}
