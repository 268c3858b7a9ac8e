//! Tensors from Python numbers, lists, arrays and other tensors.

use bytes::Bytes;
use gt::{Shape, Tensor, TensorData};
use numpy::{PyArray1, PyArrayMethods, PyUntypedArray};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

use super::filled::filled;
use super::finish;
use crate::tensor::PyTensor;
use crate::{argument, array, convert, dtype, session, source};

/// Return a new tensor with the values of a number, nested lists, an array or another tensor.
///
/// Without a dtype, an array or tensor keeps its own; bools become bool, and other numbers the
/// default dtype, or its complex counterpart.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, requires_grad=false))]
pub(super) fn tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let session = session::ready_current(py)?;
    source::note(py);
    let tensor = convert::tensor(&session, data, dtype::parse_optional(dtype)?)?;
    finish(tensor, requires_grad)
}

/// Return a new tensor like `tensor()`, in the session of the tensor `other`.
#[pyfunction]
#[pyo3(signature = (other, data, dtype=None))]
pub(super) fn tensor_beside(
    py: Python<'_>,
    other: &PyTensor,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let session = session::ready_session(py, &other.0)?;
    source::note(py);
    let dtype = dtype::parse_optional(dtype)?;
    let is_number = dtype.is_some()
        && (data.is_exact_instance_of::<PyFloat>()
            || data.is_exact_instance_of::<PyInt>()
            || data.is_exact_instance_of::<PyBool>());
    if is_number {
        // A fill instruction rather than data: recurring sequences then send no data.
        return Ok(PyTensor(filled(&session, Shape::SCALAR, data, dtype)?));
    }
    Ok(PyTensor(convert::tensor(&session, data, dtype)?))
}

/// Return `data` itself if it is a tensor of the dtype; otherwise a new tensor like `tensor()`.
#[pyfunction]
#[pyo3(signature = (data, dtype=None))]
pub(super) fn as_tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyTensor>> {
    if let Ok(given) = data.cast::<PyTensor>() {
        let wanted = dtype::parse_optional(dtype)?;
        if wanted.is_none_or(|wanted| wanted == given.get().0.dtype()) {
            return Ok(given.clone().unbind());
        }
    }
    Py::new(py, tensor(py, data, dtype, false)?)
}

/// Return a new tensor with the values, shape and dtype of a NumPy array.
#[pyfunction]
#[pyo3(
    signature = (array, requires_grad=None),
    text_signature = "(array, requires_grad=False)"
)]
pub(super) fn from_numpy(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    requires_grad: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    if array.cast::<PyUntypedArray>().is_err() {
        let given = array.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "from_numpy: expected np.ndarray (got {given})\n  hint: gt.tensor(...) takes numbers and lists, gt.as_tensor(...) also tensors"
        )));
    }
    let flag = |given| argument::flag("from_numpy", "requires_grad", given);
    let requires_grad = requires_grad.map(flag).transpose()?.unwrap_or(false);
    let session = session::ready_current(py)?;
    source::note(py);
    let data = array::from_array(array, None)?;
    finish(Tensor::from_data(&session, data), requires_grad)
}

/// Return a new tensor from the little-endian bytes of its elements in row-major order, given as a
/// NumPy array of uint8.
#[pyfunction]
pub(super) fn from_bytes(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
    shape: Vec<i64>,
) -> PyResult<PyTensor> {
    let session = session::ready_current(py)?;
    source::note(py);
    let (dtype, shape) = (dtype::parse(dtype)?, convert::shape(&shape)?);
    let values = values.cast::<PyArray1<u8>>()?.readonly();
    let bytes = Bytes::from(array::copied(values.as_slice()?));
    let (given, expected) = (bytes.len(), shape.numel() * dtype.size());
    let data = TensorData::new(dtype, shape, bytes).ok_or_else(|| {
        PyValueError::new_err(format!(
            "from_bytes: {given} bytes given, expected {expected} for {dtype} of shape {shape}"
        ))
    })?;
    Ok(PyTensor(Tensor::from_data(&session, data)))
}

/// Return the little-endian bytes of a tensor's elements in row-major order, as a new NumPy array
/// of uint8. Waits for the values.
#[pyfunction]
pub(super) fn to_bytes<'py>(
    py: Python<'py>,
    tensor: &PyTensor,
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    Ok(PyArray1::from_slice(py, &tensor.fetch(py)?.bytes))
}
