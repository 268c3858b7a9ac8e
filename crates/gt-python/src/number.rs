//! Conversion of Python numbers to elements of a dtype.

use gt::DType;
use gt::ir::number;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat};

use crate::error::IntoPython;
use crate::tensor::PyTensor;
use crate::{convert, export};

/// Returns a number converted to a dtype's element: an int for integer dtypes, a float for floating
/// ones. Objects that are not numbers are returned unchanged.
///
/// # Errors
/// The dtype cannot hold the number; the message names `operation`.
pub fn element<'py>(
    operation: &'static str,
    given: &Bound<'py, PyAny>,
    dtype: DType,
) -> PyResult<Bound<'py, PyAny>> {
    let py = given.py();
    if let Ok(complex) = given.cast::<PyComplex>() {
        let (real, imaginary) = (complex.real(), complex.imag());
        if dtype.is_complex() {
            return Ok(given.clone());
        }
        if dtype == DType::Bool {
            let is_not_zero = real != 0.0 || imaginary != 0.0;
            return Ok(PyBool::new(py, is_not_zero).to_owned().into_any());
        }
        if imaginary != 0.0 {
            return Err(PyValueError::new_err(format!(
                "{operation}: {given} is complex and cannot be stored as {dtype}\n  hint: give its .real, or use a complex tensor"
            )));
        }
        return element(operation, PyFloat::new(py, real).as_any(), dtype);
    }
    if let Some(number) = convert::scalar(given)? {
        let element = number::element(operation, number, dtype);
        return Ok(export::number(py, element.map_err(gt::ClientError::from).py()?)?.into_bound(py));
    }
    // NumPy scalars and 0-d arrays.
    if given.cast::<PyTensor>().is_err()
        && given.hasattr("__array_interface__")?
        && given.getattr("shape")?.len()? == 0
    {
        return element(operation, &given.call_method0("item")?, dtype);
    }
    Ok(given.clone())
}

/// The operations of the Python layer that store a number; error messages name them.
const STORING: [&str; 5] = ["masked_fill", "index_fill", "scatter", "threshold", "pad"];

/// Return a number converted to an element of a dtype; return other objects unchanged.
///
/// Raises:
///     ValueError: the dtype cannot hold the number; the message names `operation`.
#[pyfunction]
fn element_of(
    operation: &str,
    given: &Bound<'_, PyAny>,
    dtype: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let named = STORING.into_iter().find(|name| *name == operation).unwrap_or("number");
    let dtype = crate::dtype::parse(dtype)?;
    element(named, given, dtype).map(Bound::unbind)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(element_of, module)?)
}
