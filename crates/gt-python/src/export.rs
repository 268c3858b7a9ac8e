//! Rust values as Python numbers, nested lists and NumPy arrays.

use gt::{DType, Scalar, TensorData};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyDict, PyList, PyTuple};

use crate::array::recode;

/// Returns a NumPy array with a copy of tensor data; bfloat16, which NumPy lacks, becomes float32.
pub fn to_array<'py>(py: Python<'py>, data: &TensorData) -> PyResult<Bound<'py, PyAny>> {
    let widened;
    let data = if data.dtype == DType::BF16 {
        widened = recode(data, DType::F32);
        &widened
    } else {
        data
    };
    let flat = PyArray1::<u8>::from_slice(py, &data.bytes);
    let dims = PyTuple::new(py, data.shape.dims())?;
    flat.call_method1("view", (data.dtype.name(),))?.call_method1("reshape", (dims,))
}

/// Returns a read-only NumPy array over tensor data; bfloat16, which NumPy lacks, becomes float32.
pub fn to_shared_array(py: Python<'_>, data: TensorData) -> PyResult<Bound<'_, PyAny>> {
    let data = if data.dtype == DType::BF16 { recode(&data, DType::F32) } else { data };
    let item = data.dtype.to_real().size();
    if !(data.bytes.as_ptr() as usize).is_multiple_of(item) {
        // A slice of a received message, which is not aligned to the elements.
        let array = to_array(py, &data)?;
        array.call_method1("setflags", (false,))?;
        return Ok(array);
    }
    py.import("numpy")?.call_method1("asarray", (SharedValues(data),))
}

/// The base object of a NumPy array: the array owns it, and it owns the memory, which is neither
/// written nor reused until then.
#[pyclass(name = "SharedValues", module = "gt._gt", frozen)]
pub struct SharedValues(TensorData);

#[pymethods]
impl SharedValues {
    /// The memory of the values in NumPy's array interface, read-only.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let TensorData { dtype, shape, bytes } = &self.0;
        let kind = match dtype {
            DType::Bool => 'b',
            dtype if dtype.is_complex() => 'c',
            dtype if dtype.is_float() => 'f',
            DType::U8 => 'u',
            _ => 'i',
        };
        let order = if dtype.size() == 1 { '|' } else { '<' };
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, shape.dims())?)?;
        interface.set_item("typestr", format!("{order}{kind}{}", dtype.size()))?;
        let is_read_only = true;
        interface.set_item("data", (bytes.as_ptr() as usize, is_read_only))?;
        Ok(interface)
    }
}

/// Returns a NumPy array of uint16 with the bits of 16-bit elements.
pub fn bits<'py>(py: Python<'py>, data: &TensorData) -> PyResult<Bound<'py, PyAny>> {
    let flat = PyArray1::<u8>::from_slice(py, &data.bytes);
    let dims = PyTuple::new(py, data.shape.dims())?;
    flat.call_method1("view", ("uint16",))?.call_method1("reshape", (dims,))
}

/// Returns the element at `index` as a Python number.
pub fn element(py: Python<'_>, data: &TensorData, index: usize) -> PyResult<Py<PyAny>> {
    if data.dtype.is_complex() {
        let (real, imaginary) = data.complex(index);
        return Ok(PyComplex::from_doubles(py, real, imaginary).into_any().unbind());
    }
    number(py, data.element(index))
}

/// Returns a scalar as a Python number.
pub fn number(py: Python<'_>, value: Scalar) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Scalar::Bool(value) => PyBool::new(py, value).to_owned().into_any().unbind(),
        Scalar::Int(value) => value.into_pyobject(py)?.into_any().unbind(),
        Scalar::Float(value) => value.into_pyobject(py)?.into_any().unbind(),
    })
}

/// Returns tensor data as nested lists; without axes, as a number.
pub fn to_list(py: Python<'_>, data: &TensorData) -> PyResult<Py<PyAny>> {
    fn level(py: Python<'_>, data: &TensorData, axis: usize, start: usize) -> PyResult<Py<PyAny>> {
        if axis == data.shape.rank() {
            return element(py, data, start);
        }
        let stride: usize = data.shape[axis + 1..].iter().product();
        let items =
            (0..data.shape[axis]).map(|index| level(py, data, axis + 1, start + index * stride));
        Ok(PyList::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any().unbind())
    }
    level(py, data, 0, 0)
}
