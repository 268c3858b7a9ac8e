//! Exporting a tensor's values to NumPy and, by DLPack, to other frameworks.

use pyo3::exceptions::{PyBufferError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use super::PyTensor;
use crate::{argument, convert, export};

impl PyTensor {
    /// Returns PyTorch's error if the tensor requires gradients, as an array has no history.
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
    /// The priority by which NumPy leaves `array + tensor` to the tensor.
    #[classattr]
    fn __array_priority__() -> f64 {
        1000.0
    }

    /// Return a NumPy array with a copy of the values. Waits until they are computed.
    ///
    /// bfloat16, which NumPy lacks, becomes float32.
    ///
    /// Raises:
    ///     RuntimeError: the tensor requires gradients, unless `force` is true.
    #[pyo3(signature = (*, force=None), text_signature = "($self, *, force=False)")]
    fn numpy(&self, py: Python<'_>, force: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let force = force.map(|given| argument::flag("numpy", "force", given)).transpose()?;
        if force != Some(true) {
            self.check_without_history()?;
        }
        Ok(export::to_array(py, &self.fetch(py)?)?.unbind())
    }

    /// Return the values for NumPy: `np.asarray(t)` returns a read-only array, `np.array(t)` a
    /// copy.
    ///
    /// A read-only array shares the memory in which the values arrive: that of the tensor itself if
    /// the native engine computes in this process. Only bfloat16 is copied, and becomes float32.
    /// The array keeps its values when the tensor is changed in place. Another dtype than the
    /// tensor's requires a copy, which `copy=False` forbids.
    #[pyo3(signature = (dtype=None, copy=None))]
    fn __array__(
        &self,
        py: Python<'_>,
        dtype: Option<&Bound<'_, PyAny>>,
        copy: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let copy = copy.map(|given| argument::flag("__array__", "copy", given)).transpose()?;
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

    /// Return the result of a NumPy function on this tensor as a tensor.
    #[pyo3(
        signature = (array, context=None, return_scalar=None),
        text_signature = "($self, array, context=None, return_scalar=False)"
    )]
    fn __array_wrap__(
        &self,
        array: &Bound<'_, PyAny>,
        context: Option<&Bound<'_, PyAny>>,
        return_scalar: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let _ = (context, return_scalar);
        Ok(PyTensor(convert::tensor(&self.0.session(), array, None)?))
    }

    /// Return a DLPack capsule with a copy of the values in host memory, made through NumPy.
    ///
    /// Raises:
    ///     BufferError: the tensor requires gradients, or `copy` is False.
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
        let copy = options.map(|options| options.get_item("copy")).transpose()?.flatten();
        if copy.is_some_and(|copy| copy.is(PyBool::new(py, false))) {
            return Err(PyBufferError::new_err(
                "__dlpack__: the values are copied to host memory, which copy=False forbids\n  hint: np.asarray(x) shares the memory in which they arrive",
            ));
        }
        if self.0.dtype() == gt::DType::BF16 {
            let bits = export::bits(py, &self.fetch(py)?)?;
            let options = options.cloned().unwrap_or_else(|| PyDict::new(py));
            let export = py.import("gt._dlpack")?.getattr("export_bfloat16")?;
            return Ok(export.call1((bits, options))?.unbind());
        }
        self.numpy(py, None)?.call_method(py, "__dlpack__", (), options)
    }

    /// Return DLPack's device of host memory: `(kDLCPU, 0)`.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }
}
