//! The PyTorch classes and functions that kernels use.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// The classes and functions that the Python part of `gt.torch` registers.
pub struct TorchApi {
    pub tensor: Py<PyAny>,
    pub parameter: Py<PyAny>,
    pub dtype: Py<PyAny>,
    /// GT's dtypes, keyed by PyTorch's.
    pub dtypes: Py<PyDict>,
    /// Resizes a PyTorch tensor before a result of another shape is written to it.
    pub resize: Py<PyAny>,
    /// Converts a host tensor to a GT tensor.
    pub from_host: Py<PyAny>,
}

/// Set by `Kernel.connect`.
pub static TORCH_API: PyOnceLock<TorchApi> = PyOnceLock::new();

impl TorchApi {
    /// Returns whether an object is a PyTorch tensor.
    pub fn is_tensor(&self, given: &Bound<'_, PyAny>) -> PyResult<bool> {
        let class = given.get_type();
        Ok(class.is(&self.tensor)
            || class.is(&self.parameter)
            || given.is_instance(self.tensor.bind(given.py()))?)
    }
}
