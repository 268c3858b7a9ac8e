//! Arguments of Python calls by kind: an error names the call and the parameter, and says what was
//! given and what is expected.
//!
//! PyO3 converts an argument before the function runs, and refuses one in words of its own. So
//! functions that users call take objects, and convert them here.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};

/// Returns the text of the error for an argument of another kind than `expected`.
pub fn mismatch(call: &str, name: &str, expected: &str, given: &Bound<'_, PyAny>) -> String {
    let kind = given.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string());
    let shape = given.getattr("shape").ok().and_then(|shape| shape.cast_into::<PyTuple>().ok());
    let shown = match shape {
        // The text of a tensor needs its values.
        Some(shape) => format!(" of shape {shape}"),
        None => match given.repr() {
            Ok(text) if text.len().is_ok_and(|length| length <= 40) => format!(" {text}"),
            _ => String::new(),
        },
    };
    format!("{call}: argument '{name}' must be {expected}, not {kind}{shown}")
}

#[cold]
fn wrong(call: &str, name: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(mismatch(call, name, expected, given))
}

/// Returns the value of a Python or NumPy integer; `None` for bools, floats and other objects.
pub fn whole(given: &Bound<'_, PyAny>) -> Option<i64> {
    if given.is_instance_of::<PyBool>() || given.is_instance_of::<PyFloat>() {
        return None;
    }
    if given.is_instance_of::<PyInt>() {
        return given.extract().ok();
    }
    given.call_method0("__index__").ok()?.extract().ok()
}

/// Returns an argument that must be an integer, described as `expected`.
fn integer(call: &str, name: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    whole(given).ok_or_else(|| {
        if given.is_instance_of::<PyInt>() && !given.is_instance_of::<PyBool>() {
            let text = format!("{call}: {name} is {given}, which does not fit into int64");
            return PyValueError::new_err(text);
        }
        wrong(call, name, expected, given)
    })
}

/// Returns an argument that must be an int.
pub fn int(call: &str, name: &str, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer(call, name, "an int", given)
}

/// Returns an argument that must be an axis.
pub fn axis(call: &str, name: &str, given: &Bound<'_, PyAny>) -> PyResult<i64> {
    integer(call, name, "an axis (an int)", given)
}

/// Returns an argument that must be True or False.
pub fn flag(call: &str, name: &str, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    // NumPy's bools are converted, too.
    given.extract().map_err(|_| wrong(call, name, "True or False", given))
}

/// Returns an argument that must be True, False or an int, which is true unless it is 0.
pub fn truth(call: &str, name: &str, given: &Bound<'_, PyAny>) -> PyResult<bool> {
    match whole(given) {
        Some(number) => Ok(number != 0),
        None => flag(call, name, given),
    }
}

/// Returns an argument that must be a number.
pub fn number(call: &str, name: &str, given: &Bound<'_, PyAny>) -> PyResult<f64> {
    given.extract().map_err(|_| wrong(call, name, "a number", given))
}
