//! The class `dtype` and its instances, such as `gt.float32`.

use gt::DType;
use gt::tensor::default_dtype;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyString;

use crate::error::IntoPython;

/// The type of a tensor's elements. It also equals its name: `t.dtype == "float32"`.
#[pyclass(name = "dtype", module = "gt", frozen)]
pub struct PyDType(pub DType);

#[pymethods]
impl PyDType {
    /// The name, such as "float32".
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// The number of bytes of an element.
    #[getter]
    fn itemsize(&self) -> usize {
        self.0.size()
    }

    /// Whether it is a real floating-point dtype.
    #[getter]
    fn is_floating_point(&self) -> bool {
        self.0.is_float()
    }

    /// Whether it is a complex dtype.
    #[getter]
    fn is_complex(&self) -> bool {
        self.0.is_complex()
    }

    /// Return the dtype of the real and imaginary parts; for a real dtype, the dtype itself.
    fn to_real(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        to_python(py, self.0.to_real())
    }

    /// Return the complex dtype whose real and imaginary parts have this dtype.
    fn to_complex(&self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        to_python(py, self.0.to_complex())
    }

    fn __repr__(&self) -> String {
        format!("gt.{}", self.0)
    }

    fn __str__(&self) -> String {
        format!("gt.{}", self.0)
    }

    /// Return the hash of the name, which the dtype is equal to.
    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        PyString::intern(py, self.0.name()).hash()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        parse(other).is_ok_and(|dtype| dtype == self.0)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (&'static str,))> {
        let parse = slf.py().import("gt._gt")?.getattr("parse_dtype")?;
        Ok((parse, (slf.get().0.name(),)))
    }
}

/// One Python object for each dtype.
static OBJECTS: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();

/// Returns the Python objects of all dtypes, in the order of [`DType::ALL`].
pub fn objects(py: Python<'_>) -> PyResult<&Vec<Py<PyDType>>> {
    OBJECTS.get_or_try_init(py, || {
        DType::ALL.into_iter().map(|dtype| Py::new(py, PyDType(dtype))).collect()
    })
}

/// Returns the Python object of a dtype.
pub fn to_python(py: Python<'_>, dtype: DType) -> PyResult<Py<PyDType>> {
    Ok(objects(py)?[dtype as usize].clone_ref(py))
}

/// Returns the dtype for a GT, NumPy or PyTorch dtype, a name, or one of Python's types `bool`,
/// `int`, `float` and `complex`.
pub fn parse(given: &Bound<'_, PyAny>) -> PyResult<DType> {
    if let Ok(dtype) = given.cast::<PyDType>() {
        return Ok(dtype.get().0);
    }
    let name = if let Ok(name) = given.extract::<String>() {
        name
    } else if let Ok(name) = given.getattr("name").and_then(|name| name.extract::<String>()) {
        name
    } else if let Ok(name) = given.getattr("__name__").and_then(|name| name.extract::<String>()) {
        match name.as_str() {
            // Python's types map to the dtypes that hold their values.
            "int" => "int64".to_string(),
            "float" => "float64".to_string(),
            "complex" => "complex128".to_string(),
            _ => name,
        }
    } else {
        given.str()?.to_string()
    };
    name.parse::<DType>().map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// Like [`parse`], for an optional argument.
pub fn parse_optional(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<DType>> {
    given.filter(|given| !given.is_none()).map(parse).transpose()
}

/// Return the dtype for a GT, NumPy or PyTorch dtype, a name, or one of Python's types `bool`,
/// `int`, `float` and `complex`.
///
/// Raises:
///     TypeError: there is no such dtype.
#[pyfunction]
fn parse_dtype(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Py<PyDType>> {
    to_python(py, parse(given)?)
}

/// Return the dtype of new floating-point tensors.
#[pyfunction]
#[pyo3(name = "default_dtype")]
fn get_default(py: Python<'_>) -> PyResult<Py<PyDType>> {
    to_python(py, default_dtype::default_dtype())
}

/// Set the dtype of new floating-point tensors.
#[pyfunction]
#[pyo3(name = "set_default_dtype")]
fn set_default(given: &Bound<'_, PyAny>) -> PyResult<()> {
    default_dtype::set_default_dtype(parse(given)?).py()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyDType>()?;
    module.add_function(wrap_pyfunction!(parse_dtype, module)?)?;
    module.add_function(wrap_pyfunction!(get_default, module)?)?;
    module.add_function(wrap_pyfunction!(set_default, module)?)?;
    for dtype in DType::ALL {
        module.add(dtype.name(), to_python(module.py(), dtype)?)?;
    }
    Ok(())
}
