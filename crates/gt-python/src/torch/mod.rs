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
use pyo3::types::PyDict;

/// The classes of PyTorch's tensors whose methods run no Python code.
pub struct TorchTypes<'py>([Bound<'py, PyAny>; 2]);

impl<'py> TorchTypes<'py> {
    /// Returns them, if the program has imported PyTorch.
    pub fn loaded(py: Python<'py>) -> Option<TorchTypes<'py>> {
        let modules = py.import("sys").ok()?.getattr("modules").ok()?.cast_into::<PyDict>().ok()?;
        let torch = modules.get_item("torch").ok()??.cast_into::<PyModule>().ok()?.dict();
        let tensor = torch.get_item("Tensor").ok()??;
        let nn = modules.get_item("torch.nn").ok()??.cast_into::<PyModule>().ok()?.dict();
        Some(TorchTypes([tensor, nn.get_item("Parameter").ok()??]))
    }

    /// Returns whether an object is a tensor of one of these classes itself.
    pub fn is_tensor(&self, object: &Bound<'py, PyAny>) -> bool {
        let class = object.get_type();
        self.0.iter().any(|of| of.is(&class))
    }
}

/// Returns what a tensor of PyTorch's device holds; `None` for tensors elsewhere.
pub fn held(tensor: &Bound<'_, PyAny>) -> Option<HeldValue> {
    let storage = tensor.call_method0("untyped_storage").ok()?;
    let address: usize = storage.call_method0("data_ptr").ok()?.extract().ok()?;
    Some(storage::value_at(address)?.held())
}

/// Returns the gradient of a tensor, if it is a leaf that has one: others would warn.
pub fn gradient<'py>(tensor: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let is = |name| tensor.getattr(name).and_then(|of| of.extract::<bool>()).unwrap_or(false);
    let gradient = (is("is_leaf") && is("requires_grad")).then(|| tensor.getattr("grad").ok())?;
    gradient.filter(|gradient| !gradient.is_none())
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
