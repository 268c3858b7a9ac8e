//! What kernels need of PyTorch's side.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

/// What a kernel asks of PyTorch's side.
pub struct TorchApi {
    pub tensor: Py<PyAny>,
    pub parameter: Py<PyAny>,
    pub dtype: Py<PyAny>,
    /// GT's dtypes by PyTorch's.
    pub dtypes: Py<PyDict>,
    /// Gives a tensor of PyTorch's another shape before a result is written to it.
    pub resize: Py<PyAny>,
    /// A tensor of the host's, as GT's.
    pub from_host: Py<PyAny>,
}

pub static TORCH_API: PyOnceLock<TorchApi> = PyOnceLock::new();

impl TorchApi {
    /// Whether something is a tensor of PyTorch's.
    pub fn is_tensor(&self, given: &Bound<'_, PyAny>) -> PyResult<bool> {
        let class = given.get_type();
        Ok(class.is(&self.tensor)
            || class.is(&self.parameter)
            || given.is_instance(self.tensor.bind(given.py()))?)
    }
}
