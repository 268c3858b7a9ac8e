//! Passing tensor values to and from a Python engine without copies.

use bytes::Bytes;
use gt::ir::{DType, Meta, Shape, TensorData};
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyMemoryView, PyTuple};

use super::EngineTensor;
use crate::export::to_shared_array;

/// Creates an engine's tensor from values. They are not copied; if they are shared, the engine gets
/// read-only memory.
pub fn create(engine: &Bound<'_, PyAny>, data: TensorData) -> PyResult<Py<PyAny>> {
    let py = engine.py();
    let shape = PyTuple::new(py, data.shape.dims())?;
    let dtype = data.dtype.name();
    let values = if data.bytes.is_empty() || data.bytes.is_unique() {
        PyArray1::from_vec(py, data.bytes.into()).into_any()
    } else {
        let flat = Shape::new(&[data.bytes.len()]);
        let shape = flat.map_err(|error| PyValueError::new_err(error.to_string()))?;
        to_shared_array(py, TensorData { dtype: DType::U8, shape, bytes: data.bytes })?
    };
    let given = (PyMemoryView::from(&values)?, dtype, shape);
    Ok(engine.call_method1("create", given)?.unbind())
}

/// Returns a tensor's values in the memory that the engine provides, without a copy.
pub fn read(engine: &Bound<'_, PyAny>, tensor: &EngineTensor) -> PyResult<TensorData> {
    shared(tensor.meta, &engine.call_method1("read", (&*tensor.object,))?)
}

/// Returns the values of an object with the buffer protocol, without a copy.
pub fn shared(meta: Meta, values: &Bound<'_, PyAny>) -> PyResult<TensorData> {
    let flat = values.py().import("numpy")?.call_method1("frombuffer", (values, "u1"));
    // NumPy's `frombuffer` refuses empty buffers.
    let bytes =
        if meta.bytes() == 0 { Bytes::new() } else { Bytes::from_owner(PythonBuffer::new(flat?)?) };
    let length = bytes.len();
    TensorData::new(meta.dtype, meta.shape, bytes).ok_or_else(|| {
        PyValueError::new_err(format!(
            "read gave {length} bytes for {} {}, which has {}",
            meta.dtype,
            meta.shape,
            meta.bytes()
        ))
    })
}

/// The memory of a NumPy array that is no longer written to.
struct PythonBuffer {
    _array: Py<PyAny>,
    start: *const u8,
    length: usize,
}

impl PythonBuffer {
    fn new(flat: Bound<'_, PyAny>) -> PyResult<PythonBuffer> {
        let array: PyReadonlyArray1<'_, u8> = flat.extract()?;
        let (start, length) = (array.data() as *const u8, array.len());
        if !array.is_contiguous() {
            return Err(PyValueError::new_err("read gave bytes that do not lie one after another"));
        }
        drop(array);
        Ok(PythonBuffer { _array: flat.unbind(), start, length })
    }
}

impl AsRef<[u8]> for PythonBuffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `_array` keeps the memory alive; it is contiguous, so `length` bytes follow
        // `start`. Engines do not write to values that they have returned.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

// SAFETY: the memory is only read, and Python objects may be dropped in any thread.
unsafe impl Send for PythonBuffer {}
