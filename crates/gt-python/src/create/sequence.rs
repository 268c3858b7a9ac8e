//! Ranges of numbers, and the identity matrix.

use gt::tensor::default_dtype::default_dtype;
use gt::{DType, Scalar, Tensor};
use pyo3::prelude::*;

use super::number;
use crate::error::IntoPython;
use crate::tensor::PyTensor;
use crate::{dtype, session, source};

/// Return the numbers in [start, end) in steps: `arange(end)`, `arange(start, end)` or
/// `arange(start, end, step)`. Without a dtype, it is int64 if all are integers, else the default.
#[pyfunction]
#[pyo3(signature = (start, end=None, step=None, dtype=None))]
pub(super) fn arange(
    py: Python<'_>,
    start: &Bound<'_, PyAny>,
    end: Option<&Bound<'_, PyAny>>,
    step: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let first = number(start, "start")?;
    let (start, end) = match end.filter(|end| !end.is_none()) {
        Some(end) => (first, number(end, "end")?),
        None => (Scalar::Int(0), first),
    };
    let step = step.map_or(Ok(Scalar::Int(1)), |step| number(step, "step"))?;
    let whole = [start, end, step].iter().all(|value| !matches!(value, Scalar::Float(_)));
    let default = if whole { DType::I64 } else { default_dtype() };
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(default);
    let session = session::ready_current(py)?;
    source::note(py);
    Ok(PyTensor(Tensor::arange(&session, start, end, step, dtype).py()?))
}

/// Return the integers in [0, n) as int64, in the session of the tensor `other`.
#[pyfunction]
pub(super) fn arange_beside(py: Python<'_>, other: &PyTensor, n: i64) -> PyResult<PyTensor> {
    let session = session::ready_session(py, &other.0)?;
    source::note(py);
    let (start, end, step) = (Scalar::Int(0), Scalar::Int(n), Scalar::Int(1));
    Ok(PyTensor(Tensor::arange(&session, start, end, step, DType::I64).py()?))
}

/// Return `steps` evenly spaced numbers from `start` to `end`, both included.
#[pyfunction]
#[pyo3(signature = (start, end, steps, dtype=None))]
pub(super) fn linspace(
    py: Python<'_>,
    start: &Bound<'_, PyAny>,
    end: &Bound<'_, PyAny>,
    steps: i64,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let (start, end) = (number(start, "start")?, number(end, "end")?);
    let dtype = dtype::parse_optional(dtype)?.unwrap_or_else(default_dtype);
    let session = session::ready_current(py)?;
    source::note(py);
    Ok(PyTensor(Tensor::linspace(&session, start, end, steps, dtype).py()?))
}

/// Return an n x m matrix (n x n without `m`) with ones on the diagonal and zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n, m=None, dtype=None))]
pub(super) fn eye(
    py: Python<'_>,
    n: i64,
    m: Option<i64>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let dtype = dtype::parse_optional(dtype)?.unwrap_or_else(default_dtype);
    let session = session::ready_current(py)?;
    source::note(py);
    Ok(PyTensor(Tensor::eye(&session, n, m.unwrap_or(n), dtype).py()?))
}
