//! A tensor's values as NumPy's arrays, and for other frameworks.

use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::PyTensor;
use crate::{convert, export};

impl PyTensor {
    /// An error as PyTorch's for a tensor that requires gradients: an array has no history.
    fn check_without_history(&self) -> PyResult<()> {
        if self.0.requires_grad() {
            return Err(PyRuntimeError::new_err(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
            ));
        }
        Ok(())
    }
}

#[pymethods]
impl PyTensor {
    /// NumPy leaves operations with its arrays on the left to the tensor.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    /// The values as a NumPy array of its own, which may be written. Waits until they are computed.
    /// bfloat16, which NumPy lacks, becomes float32.
    ///
    /// A tensor that requires gradients is a RuntimeError, unless `force` is given.
    #[pyo3(signature = (*, force=false))]
    fn numpy(&self, py: Python<'_>, force: bool) -> PyResult<Py<PyAny>> {
        if !force {
            self.check_without_history()?;
        }
        Ok(export::to_array(py, &self.fetch(py)?)?.unbind())
    }

    /// The values as NumPy asks for them: `np.asarray(t)` gives a read-only array, wherever the
    /// tensor is, and `np.array(t)` one of its own.
    ///
    /// A read-only array lies over the memory in which the values come: that of the tensor itself
    /// where GT's own engine computes in this process. Nothing is copied but bfloat16, which
    /// becomes float32. Such an array keeps its values: changing the tensor in place changes no
    /// array. A dtype other than the tensor's takes a copy, which `copy=False` forbids.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__(
        &self,
        py: Python<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        self.check_without_history()?;
        if copy == Some(false) && self.0.dtype() == gt::DType::BF16 {
            return Err(PyValueError::new_err(
                "__array__: bfloat16, which NumPy lacks, cannot be had without a copy",
            ));
        }
        let data = self.fetch(py)?;
        let array = match copy {
            Some(true) => export::to_array(py, &data)?,
            _ => export::to_shared_array(py, data)?,
        };
        let Some(dtype) = dtype.filter(|dtype| !dtype.is_none()) else {
            return Ok(array.unbind());
        };
        if array.getattr("dtype")?.eq(dtype)? {
            return Ok(array.unbind());
        }
        if copy == Some(false) {
            return Err(PyValueError::new_err(format!(
                "__array__: {} cannot be had as {dtype} without a copy",
                self.0.dtype()
            )));
        }
        Ok(array.call_method1("astype", (dtype,))?.unbind())
    }

    /// The result of a function of NumPy's that took the values as an array.
    #[pyo3(signature = (array, context=None, return_scalar=false))]
    fn __array_wrap__(
        &self,
        array: &Bound<'_, PyAny>,
        context: Option<&Bound<'_, PyAny>>,
        return_scalar: bool,
    ) -> PyResult<PyTensor> {
        let _ = (context, return_scalar);
        Ok(PyTensor(convert::tensor(&self.0.session(), array, None)?))
    }

    /// The values for another framework, through NumPy: always a copy in the host's memory.
    #[pyo3(signature = (**options))]
    fn __dlpack__(
        &self,
        py: Python<'_>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyAny>> {
        if self.0.requires_grad() {
            return Err(PyBufferError::new_err(
                "Can't export tensors that require gradient, use tensor.detach()",
            ));
        }
        if self.0.dtype() == gt::DType::BF16 {
            let bits = export::bits(py, &self.fetch(py)?)?;
            let options = options.cloned().unwrap_or_else(|| PyDict::new(py));
            let export = py.import("gt._dlpack")?.getattr("export_bfloat16")?;
            return Ok(export.call1((bits, options))?.unbind());
        }
        self.numpy(py, false)?.call_method(py, "__dlpack__", (), options)
    }

    /// The host's memory, as DLPack names it.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }
}
