//! The class `Tensor`.
//!
//! - [`operators`]: `+`, `@`, `<`, `-=` and their likes.
//! - [`shape`]: rearranging; [`layout`]: memory that is shared; [`assign`]: changes in place.
//! - [`values`]: getting values out; [`arrays`]: as NumPy's arrays; [`index`]: `x[...]`;
//!   [`gradient`]: autograd.

mod arrays;
mod assign;
mod gradient;
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
    /// Made for this operation from a list or array.
    Converted(Tensor),
    Scalar(Scalar),
}

impl<'py> PyOperand<'py> {
    /// An operand beside `this`, whose session a list or array is brought to.
    pub fn parse(this: &Tensor, given: &Bound<'py, PyAny>) -> PyResult<PyOperand<'py>> {
        PyOperand::parse_in(|| Ok(this.session()), || this.dtype(), given)
    }

    /// An operand in the session that `session` gives when it is needed. A complex number has as
    /// many digits as the dtype `beside` it.
    pub fn parse_in(
        session: impl FnOnce() -> PyResult<Session>,
        beside: impl FnOnce() -> gt::DType,
        given: &Bound<'py, PyAny>,
    ) -> PyResult<PyOperand<'py>> {
        if let Ok(tensor) = given.cast::<PyTensor>() {
            return Ok(PyOperand::Tensor(tensor.clone()));
        }
        if let Some(scalar) = convert::scalar(given)? {
            return Ok(PyOperand::Scalar(scalar));
        }
        if given.is_instance_of::<PyComplex>() {
            let dtype = Some(beside().to_complex());
            return Ok(PyOperand::Converted(convert::tensor(&session()?, given, dtype)?));
        }
        if given.hasattr("__array__")? || given.is_instance_of::<pyo3::types::PyList>() {
            return Ok(PyOperand::Converted(convert::tensor(&session()?, given, None)?));
        }
        Err(PyTypeError::new_err(format!(
            "an operand must be a tensor, a number or an array, not {}",
            given.get_type().name()?
        )))
    }

    /// Whether an object is a tensor, a number or an array: Python asks other objects themselves
    /// what it is to be compared with a tensor.
    pub fn is_operand(given: &Bound<'_, PyAny>) -> PyResult<bool> {
        let is_number = given.is_instance_of::<pyo3::types::PyFloat>()
            || given.is_instance_of::<pyo3::types::PyInt>()
            || given.is_instance_of::<PyComplex>();
        Ok(is_number
            || given.cast::<PyTensor>().is_ok()
            || given.is_instance_of::<pyo3::types::PyList>()
            || given.hasattr("__array__")?)
    }

    pub fn operand(&self) -> Operand<&Tensor> {
        match self {
            PyOperand::Tensor(tensor) => Operand::Tensor(&tensor.get().0),
            PyOperand::Converted(tensor) => Operand::Tensor(tensor),
            PyOperand::Scalar(scalar) => Operand::Scalar(*scalar),
        }
    }
}
