//! The class `Tensor`.
//!
//! - [`operators`]: operators such as `+`, `@`, `<` and `-=`; [`index`]: `x[...]`.
//! - [`shape`]: shape operations; [`layout`]: strides and views; [`assign`]: in-place changes.
//! - [`values`]: attributes, and fetching values; [`arrays`]: export to NumPy and DLPack.
//! - [`gradient`] has autograd.

mod arrays;
mod assign;
pub mod gradient;
mod index;
mod layout;
mod operators;
mod shape;
mod values;

use gt::ir::Operand;
use gt::{Scalar, Session, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyComplex;

use crate::convert;

/// An n-dimensional array of one dtype. Operations on it return at once; its values are computed in
/// the background, and fetched on request.
#[pyclass(name = "Tensor", module = "gt", frozen, subclass, weakref)]
pub struct PyTensor(pub Tensor);

/// An operand from Python: a tensor or a number.
pub enum PyOperand<'py> {
    Tensor(Bound<'py, PyTensor>),
    /// A tensor created for this operation from a list or array.
    Converted(Tensor),
    Scalar(Scalar),
}

impl<'py> PyOperand<'py> {
    /// Converts an operand; a list or array becomes a tensor in the session of `this`.
    pub fn parse(this: &Tensor, given: &Bound<'py, PyAny>) -> PyResult<PyOperand<'py>> {
        PyOperand::parse_in(|| Ok(this.session()), || this.dtype(), given)
    }

    /// Converts an operand; a list or array becomes a tensor in the session that `session` returns.
    /// A complex number gets the precision of the dtype that `beside` returns.
    pub fn parse_in(
        session: impl FnOnce() -> PyResult<Session>,
        beside: impl FnOnce() -> gt::DType,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<PyOperand<'py>> {
        let kind = given.get_type();
        PyOperand::parse_any(session, beside, given)?.ok_or_else(|| {
            let kind = kind.name().map_or_else(|_| "this".into(), |name| name.to_string());
            PyTypeError::new_err(format!(
                "an operand must be a tensor, a number or an array, not {kind}"
            ))
        })
    }

    /// Converts an operand as `parse_in` does; returns `None` for an object of another kind.
    pub fn parse_any(
        session: impl FnOnce() -> PyResult<Session>,
        beside: impl FnOnce() -> gt::DType,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<Option<PyOperand<'py>>> {
        if let Ok(tensor) = given.cast::<PyTensor>() {
            return Ok(Some(PyOperand::Tensor(tensor.clone())));
        }
        if let Some(scalar) = convert::scalar(given)? {
            return Ok(Some(PyOperand::Scalar(scalar)));
        }
        if given.is_instance_of::<PyComplex>() {
            let dtype = Some(beside().to_complex());
            return Ok(Some(PyOperand::Converted(convert::tensor(&session()?, given, dtype)?)));
        }
        if given.hasattr("__array__")? || given.is_instance_of::<pyo3::types::PyList>() {
            return Ok(Some(PyOperand::Converted(convert::tensor(&session()?, given, None)?)));
        }
        Ok(None)
    }

    /// Converts an argument that must be a tensor or an array, for a function named `operation`.
    pub fn tensor(this: &Tensor, given: &Bound<'py, PyAny>, operation: &str) -> PyResult<Tensor> {
        if let Ok(tensor) = given.cast::<PyTensor>() {
            return Ok(tensor.get().0.clone());
        }
        if given.hasattr("__array__")? {
            return convert::tensor(&this.session(), given, None);
        }
        Err(PyTypeError::new_err(format!(
            "{operation}: expected a tensor or an array, not {}",
            given.get_type().name()?
        )))
    }

    /// Returns whether an object is a tensor, number, list or array. Comparisons with other objects
    /// are left to their own methods.
    pub fn is_operand(given: &Bound<'_, PyAny>) -> PyResult<bool> {
        let is_number = given.is_instance_of::<pyo3::types::PyFloat>()
            || given.is_instance_of::<pyo3::types::PyInt>()
            || given.is_instance_of::<PyComplex>();
        Ok(is_number
            || given.cast::<PyTensor>().is_ok()
            || given.is_instance_of::<pyo3::types::PyList>()
            || given.hasattr("__array__")?)
    }

    /// Returns it as an operand of an instruction.
    pub fn operand(&self) -> Operand<&Tensor> {
        match self {
            PyOperand::Tensor(tensor) => Operand::Tensor(&tensor.get().0),
            PyOperand::Converted(tensor) => Operand::Tensor(tensor),
            PyOperand::Scalar(scalar) => Operand::Scalar(*scalar),
        }
    }
}
