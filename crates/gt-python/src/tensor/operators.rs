//! Python operators of `Tensor`.

use gt::ir::ops::matmul::MATMUL;
use gt::ir::ops::{binary, compare, parts};
use gt::ir::{DType, Operand, Operation};
use gt::{ClientError, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use super::{PyOperand, PyTensor};
use crate::error::IntoPython;
use crate::{session, source};

/// Computes `this op other`, or `other op this` if `reflected`; `other` may be a number or an
/// array.
pub fn apply(
    py: Python<'_>,
    operation: &'static Operation,
    this: &PyTensor,
    other: &Bound<'_, PyAny>,
    reflected: bool,
) -> PyResult<PyTensor> {
    source::note(py);
    let other = PyOperand::parse(&this.0, other)?;
    let (left, right) = (Operand::Tensor(&this.0), other.operand());
    let operands = if reflected { [right, left] } else { [left, right] };
    match Tensor::try_apply(operation, &operands, Default::default()) {
        Err(ClientError::WindowFull) => {
            session::ready(py, &this.0)?;
            let session = this.0.session();
            Ok(PyTensor(Tensor::apply(&session, operation, &operands, Default::default()).py()?))
        }
        result => Ok(PyTensor(result.py()?)),
    }
}

/// Returns `this * other`, or `other * this` if `reflected`.
///
/// # Errors
/// `other` is a sequence, which Python would repeat as often as the tensor says, but the tensor is
/// no index. Without this, the error would be about the index that the user did not write.
fn multiply(
    py: Python<'_>,
    this: &PyTensor,
    other: &Bound<'_, PyAny>,
    reflected: bool,
) -> PyResult<Py<PyAny>> {
    let result = apply(py, &binary::MUL, this, other, reflected);
    if result.as_ref().is_err_and(|error| is_unsupported(py, error, other))
        && !this.is_index()
        && is_only_repeated(other)
    {
        let (own, given) = ("gt.Tensor".into(), other.get_type().name()?.to_string());
        let (left, right) = if reflected { (given, own) } else { (own, given) };
        return Err(PyTypeError::new_err(format!(
            "unsupported operand type(s) for *: '{left}' and '{right}'"
        )));
    }
    or_not_implemented(py, result, other)
}

/// Whether an object is a sequence that can be repeated, and no number.
fn is_only_repeated(other: &Bound<'_, PyAny>) -> bool {
    let kind = other.get_type();
    // SAFETY: it is the type of an object; the slots are functions, which are not called.
    unsafe {
        ffi::PyType_GetSlot(kind.as_type_ptr(), ffi::Py_nb_multiply).is_null()
            && !ffi::PyType_GetSlot(kind.as_type_ptr(), ffi::Py_sq_repeat).is_null()
    }
}

/// Returns the result of an operator, or `NotImplemented` if it failed because `other` is no
/// operand: Python then tries the other object's own operator, or says that there is none.
fn or_not_implemented(
    py: Python<'_>,
    result: PyResult<PyTensor>,
    other: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    match result {
        Ok(tensor) => Ok(Py::new(py, tensor)?.into_any()),
        Err(error) if is_unsupported(py, &error, other) => Ok(py.NotImplemented()),
        Err(error) => Err(error),
    }
}

/// Whether an operation failed because `other` is no operand.
fn is_unsupported(py: Python<'_>, error: &PyErr, other: &Bound<'_, PyAny>) -> bool {
    error.is_instance_of::<PyTypeError>(py) && !PyOperand::is_operand(other).unwrap_or(true)
}

/// Computes `this op= other`.
fn in_place(
    py: Python<'_>,
    operation: &'static Operation,
    symbol: &str,
    this: &PyTensor,
    other: &Bound<'_, PyAny>,
) -> PyResult<()> {
    match apply(py, operation, this, other, false) {
        Ok(result) => this.0.assign(&result.0, operation.name).py(),
        Err(error) if is_unsupported(py, &error, other) => Err(PyTypeError::new_err(format!(
            "unsupported operand type(s) for {symbol}: 'gt.Tensor' and '{}'",
            other.get_type().name()?
        ))),
        Err(error) => Err(error),
    }
}

macro_rules! operators {
    ($($operation:path, $symbol:literal: $plain:ident $reflected:ident $in_place:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $plain(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
                or_not_implemented(py, apply(py, &$operation, self, other, false), other)
            }

            fn $reflected(
                &self,
                py: Python<'_>,
                other: &Bound<'_, PyAny>,
            ) -> PyResult<Py<PyAny>> {
                or_not_implemented(py, apply(py, &$operation, self, other, true), other)
            }

            fn $in_place(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
                in_place(py, &$operation, $symbol, self, other)
            })*
        }
    };
}

operators! {
    binary::ADD, "+=": __add__ __radd__ __iadd__,
    binary::SUB, "-=": __sub__ __rsub__ __isub__,
    binary::DIV, "/=": __truediv__ __rtruediv__ __itruediv__,
    binary::FLOOR_DIVIDE, "//=": __floordiv__ __rfloordiv__ __ifloordiv__,
    binary::REMAINDER, "%=": __mod__ __rmod__ __imod__,
    binary::BITWISE_AND, "&=": __and__ __rand__ __iand__,
    binary::BITWISE_OR, "|=": __or__ __ror__ __ior__,
    binary::BITWISE_XOR, "^=": __xor__ __rxor__ __ixor__,
    parts::BITWISE_LEFT_SHIFT, "<<=": __lshift__ __rlshift__ __ilshift__,
    parts::BITWISE_RIGHT_SHIFT, ">>=": __rshift__ __rrshift__ __irshift__,
}

#[pymethods]
impl PyTensor {
    fn __mul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        multiply(py, self, other, false)
    }

    fn __rmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        multiply(py, self, other, true)
    }

    fn __imul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        in_place(py, &binary::MUL, "*=", self, other)
    }

    fn __pow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        no_modulo(modulo)?;
        or_not_implemented(py, apply(py, &binary::POW, self, other, false), other)
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        no_modulo(modulo)?;
        or_not_implemented(py, apply(py, &binary::POW, self, other, true), other)
    }

    fn __ipow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        no_modulo(modulo)?;
        in_place(py, &binary::POW, "**=", self, other)
    }

    fn __matmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        or_not_implemented(py, matmul(py, self, other, false), other)
    }

    fn __rmatmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        or_not_implemented(py, matmul(py, self, other, true), other)
    }

    /// Return the matrix product with another tensor.
    fn matmul(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        matmul(py, self, other, false)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.neg().py()?))
    }

    fn __pos__(&self) -> PyTensor {
        PyTensor(self.0.clone())
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.abs().py()?))
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.bitwise_not().py()?))
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        op: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let operation = match op {
            CompareOp::Eq => &compare::EQ,
            CompareOp::Ne => &compare::NE,
            CompareOp::Lt => &compare::LT,
            CompareOp::Le => &compare::LE,
            CompareOp::Gt => &compare::GT,
            CompareOp::Ge => &compare::GE,
        };
        if !PyOperand::is_operand(other)? {
            return Ok(py.NotImplemented());
        }
        let result = apply(py, operation, self, other, false)?;
        Ok(Py::new(py, result)?.into_any())
    }

    fn __hash__(&self) -> usize {
        self.0.identity()
    }
}

fn no_modulo(modulo: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    match modulo {
        Some(given) if !given.is_none() => {
            Err(PyTypeError::new_err("pow takes no modulus for tensors; use (a ** b) % m"))
        }
        _ => Ok(()),
    }
}

fn matmul(
    py: Python<'_>,
    this: &PyTensor,
    other: &Bound<'_, PyAny>,
    reflected: bool,
) -> PyResult<PyTensor> {
    let has_axes = |tensor: &Tensor| tensor.rank() >= 2;
    if other.cast::<PyTensor>().is_ok_and(|other| has_axes(&other.get().0)) && has_axes(&this.0) {
        return apply(py, &MATMUL, this, other, reflected);
    }
    session::ready(py, &this.0)?;
    source::note(py);
    let session = this.0.session();
    let other = match PyOperand::parse(&this.0, other)? {
        PyOperand::Tensor(tensor) => tensor.get().0.clone(),
        PyOperand::Converted(tensor) => tensor,
        PyOperand::Scalar(scalar) => {
            Tensor::full(&session, gt::Shape::SCALAR, scalar, DType::F32).py()?
        }
    };
    let product = if reflected { other.matmul(&this.0) } else { this.0.matmul(&other) };
    Ok(PyTensor(product.py()?))
}
