//! Elementwise methods, and their forms in place.

use gt::ir::Operation;
use gt::ir::ops::{binary, compare};
use gt::tensor::elementwise;
use gt::{DType, Tensor};
use pyo3::prelude::*;

use super::operators::apply;
use super::{PyTensor, Value};
use crate::error::IntoPython;
use crate::{session, source};

macro_rules! unary {
    ($($name:ident $in_place:ident,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(&self, py: Python<'_>) -> PyResult<PyTensor> {
                session::ready(py, &self.0)?;
                source::note(py);
                Ok(PyTensor(self.0.$name().py()?))
            }

            fn $in_place(slf: &Bound<'_, Self>) -> PyResult<Py<PyTensor>> {
                let result = slf.get().$name(slf.py())?;
                assigned(slf, &result, stringify!($in_place))
            })*
        }
    };
}

unary! {
    neg neg_, abs abs_, sign sign_, exp exp_, log log_, log1p log1p_, expm1 expm1_, sqrt sqrt_,
    rsqrt rsqrt_, sin sin_, cos cos_, erf erf_, sigmoid sigmoid_, tanh tanh_, relu relu_,
    floor floor_, ceil ceil_, round round_,
}

#[pymethods]
impl PyTensor {
    fn silu(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.silu().py()?))
    }

    fn softplus(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.softplus().py()?))
    }

    /// `approximate` is "none" or "tanh".
    #[pyo3(signature = (approximate="none"))]
    fn gelu(&self, py: Python<'_>, approximate: &str) -> PyResult<PyTensor> {
        let tanh = match approximate {
            "none" => false,
            "tanh" => true,
            other => {
                return Err(pyo3::exceptions::PyValueError::new_err(format!(
                    "gelu: approximate is '{other}', expected 'none' or 'tanh'"
                )));
            }
        };
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.gelu(tanh).py()?))
    }

    fn logical_not(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.logical_not().py()?))
    }

    fn isnan(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.isnan().py()?))
    }

    /// x * x
    fn square(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        // A bool counts as a number here, as in PyTorch.
        let this = if self.0.dtype() == DType::Bool {
            self.0.cast(DType::I64).py()?
        } else {
            self.0.clone()
        };
        Ok(PyTensor(this.mul(&this).py()?))
    }

    /// Whether each value is plus or minus infinity.
    fn isinf(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        Ok(PyTensor(self.0.abs().and_then(|size| size.eq(f64::INFINITY)).py()?))
    }

    /// Whether each value is neither infinite nor NaN.
    fn isfinite(&self, py: Python<'_>) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        // A comparison with NaN is false.
        Ok(PyTensor(self.0.abs().and_then(|size| size.lt(f64::INFINITY)).py()?))
    }

    /// The values, with `value` where the mask is true.
    fn masked_fill(
        &self,
        py: Python<'_>,
        mask: &PyTensor,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        let value = Value::parse(&self.0, value)?;
        let operands =
            [gt::ir::Operand::Tensor(&mask.0), value.operand(), gt::ir::Operand::Tensor(&self.0)];
        let filled = Tensor::apply(
            &self.0.session(),
            &gt::ir::ops::ternary::WHERE,
            &operands,
            Default::default(),
        );
        Ok(PyTensor(filled.and_then(|filled| filled.cast(self.0.dtype())).py()?))
    }

    /// Takes `value` where the mask is true.
    fn masked_fill_(
        slf: &Bound<'_, Self>,
        mask: &PyTensor,
        value: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyTensor>> {
        let filled = slf.get().masked_fill(slf.py(), mask, value)?;
        assigned(slf, &filled, "masked_fill_")
    }

    /// The values, no less than min and no more than max.
    #[pyo3(signature = (min=None, max=None))]
    fn clamp(
        &self,
        py: Python<'_>,
        min: Option<&Bound<'_, PyAny>>,
        max: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        session::ready(py, &self.0)?;
        source::note(py);
        let low = min.map(|min| Value::parse(&self.0, min)).transpose()?;
        let high = max.map(|max| Value::parse(&self.0, max)).transpose()?;
        let limit = |value: &Option<Value>| match value {
            // The borrow ends with this call; operands are only read.
            Some(Value::Scalar(scalar)) => {
                Some(elementwise::Value(gt::ir::Operand::Scalar(*scalar)))
            }
            _ => None,
        };
        let (low_tensor, high_tensor) = (tensor_of(&low), tensor_of(&high));
        let low = low_tensor.as_ref().map(elementwise::Value::from).or(limit(&low));
        let high = high_tensor.as_ref().map(elementwise::Value::from).or(limit(&high));
        Ok(PyTensor(self.0.clamp(low, high).py()?))
    }

    /// Becomes no less than min and no more than max.
    #[pyo3(signature = (min=None, max=None))]
    fn clamp_(
        slf: &Bound<'_, Self>,
        min: Option<&Bound<'_, PyAny>>,
        max: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyTensor>> {
        let clamped = slf.get().clamp(slf.py(), min, max)?;
        assigned(slf, &clamped, "clamp_")
    }

    /// self + alpha * other.
    #[pyo3(signature = (other, *, alpha=None))]
    fn add(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        scaled(py, &binary::ADD, self, other, alpha)
    }

    /// Becomes self + alpha * other.
    #[pyo3(signature = (other, *, alpha=None))]
    fn add_(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyTensor>> {
        let sum = scaled(slf.py(), &binary::ADD, slf.get(), other, alpha)?;
        assigned(slf, &sum, "add_")
    }

    /// self - alpha * other.
    #[pyo3(signature = (other, *, alpha=None))]
    fn sub(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        scaled(py, &binary::SUB, self, other, alpha)
    }

    /// Becomes self - alpha * other.
    #[pyo3(signature = (other, *, alpha=None))]
    fn sub_(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        alpha: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyTensor>> {
        let rest = scaled(slf.py(), &binary::SUB, slf.get(), other, alpha)?;
        assigned(slf, &rest, "sub_")
    }
}

/// Assigns the result of an operation in place to its tensor, and returns that.
pub(super) fn assigned(
    this: &Bound<'_, PyTensor>,
    result: &PyTensor,
    operation: &'static str,
) -> PyResult<Py<PyTensor>> {
    this.get().0.assign(&result.0, operation).py()?;
    Ok(this.clone().unbind())
}

/// `this + alpha * other`, or `this - alpha * other`.
fn scaled(
    py: Python<'_>,
    operation: &'static Operation,
    this: &PyTensor,
    other: &Bound<'_, PyAny>,
    alpha: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    match alpha {
        None => apply(py, operation, this, other, false),
        Some(alpha) => apply(py, operation, this, &other.mul(alpha)?, false),
    }
}

/// The tensor of an operand that is one.
fn tensor_of(value: &Option<Value>) -> Option<Tensor> {
    match value {
        Some(Value::Tensor(tensor)) => Some(tensor.get().0.clone()),
        Some(Value::Made(tensor)) => Some(tensor.clone()),
        _ => None,
    }
}

macro_rules! binary {
    ($($name:ident => $operation:path,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
                apply(py, &$operation, self, other, false)
            })*
        }
    };
}

binary! {
    mul => binary::MUL, div => binary::DIV,
    floor_divide => binary::FLOOR_DIVIDE, remainder => binary::REMAINDER, pow => binary::POW,
    maximum => binary::MAXIMUM, minimum => binary::MINIMUM, eq => compare::EQ, ne => compare::NE,
    lt => compare::LT, le => compare::LE, gt => compare::GT, ge => compare::GE,
    bitwise_and => binary::BITWISE_AND, bitwise_or => binary::BITWISE_OR,
    bitwise_xor => binary::BITWISE_XOR, logical_and => compare::LOGICAL_AND,
    logical_or => compare::LOGICAL_OR, logical_xor => compare::LOGICAL_XOR,
}

macro_rules! in_place {
    ($($name:ident => $operation:path,)*) => {
        #[pymethods]
        impl PyTensor {
            $(fn $name(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyTensor>> {
                let result = apply(slf.py(), &$operation, slf.get(), other, false)?;
                assigned(slf, &result, stringify!($name))
            })*
        }
    };
}

in_place! {
    mul_ => binary::MUL, div_ => binary::DIV, pow_ => binary::POW,
}
