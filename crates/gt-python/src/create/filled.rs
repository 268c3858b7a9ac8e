//! Tensors filled with one number or with random numbers, of a given shape or that of another
//! tensor.

use gt::tensor::default_dtype::{default_dtype, dtype_of};
use gt::{DType, Session, Shape, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyTuple};

use super::{finish, number};
use crate::error::IntoPython;
use crate::number::element;
use crate::tensor::PyTensor;
use crate::{convert, dtype, session, source};

fn filled_with_zeros(session: &Session, shape: Shape, dtype: DType) -> gt::Result<Tensor> {
    Tensor::full(session, shape, 0i64, dtype)
}

fn filled_with_ones(session: &Session, shape: Shape, dtype: DType) -> gt::Result<Tensor> {
    Tensor::full(session, shape, 1i64, dtype)
}

macro_rules! shaped {
    ($($(#[$doc:meta])* $name:ident: $make:expr;)*) => {
        $($(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (*shape, dtype=None, requires_grad=false))]
        pub(super) fn $name(
            py: Python<'_>,
            shape: &Bound<'_, PyTuple>,
            dtype: Option<&Bound<'_, PyAny>>,
            requires_grad: bool,
        ) -> PyResult<PyTensor> {
            let session = session::ready_current(py)?;
            source::note(py);
            let shape = convert::shape_from_args(shape)?;
            let dtype = dtype::parse_optional(dtype)?.unwrap_or_else(default_dtype);
            finish($make(&session, shape, dtype).py()?, requires_grad)
        })*
    };
}

shaped! {
    /// Return a tensor of zeros, of the default dtype unless `dtype` is given.
    zeros: filled_with_zeros;
    /// Return a tensor of zeros: the same as `zeros`.
    empty: filled_with_zeros;
    /// Return a tensor of ones, of the default dtype unless `dtype` is given.
    ones: filled_with_ones;
    /// Return a tensor of uniform random numbers in [0, 1).
    rand: Tensor::rand;
    /// Return a tensor of random numbers from the standard normal distribution.
    randn: Tensor::randn;
}

/// Return a tensor of a shape, filled with one number. Without a dtype, it has that of the number.
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype=None, requires_grad=false))]
pub(super) fn full(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let session = session::ready_current(py)?;
    source::note(py);
    let shape = convert::shape(&convert::ints(shape, "the shape")?)?;
    let dtype = dtype::parse_optional(dtype)?;
    finish(filled(&session, shape, fill_value, dtype)?, requires_grad)
}

/// Returns a tensor filled with one number. Without a dtype, it has that of the number.
pub(crate) fn filled(
    session: &Session,
    shape: Shape,
    value: &Bound<'_, PyAny>,
    dtype: Option<DType>,
) -> PyResult<Tensor> {
    let value = match dtype {
        Some(dtype) => &element("full", value, dtype)?,
        None => value,
    };
    if value.is_instance_of::<PyComplex>() {
        let dims: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
        return convert::tensor(session, value, dtype)?.expand(&dims).py();
    }
    let value = number(value, "fill_value")?;
    let dtype = dtype.unwrap_or_else(|| dtype_of(value));
    Tensor::full(session, shape, value, dtype).py()
}

/// Return a tensor of uniform random integers in [low, high), of int64 unless `dtype` is given:
/// `randint(high, size)` or `randint(low, high, size)`.
#[pyfunction]
#[pyo3(signature = (*args, size=None, dtype=None))]
pub(super) fn randint(
    py: Python<'_>,
    args: &Bound<'_, PyTuple>,
    size: Option<&Bound<'_, PyAny>>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let mut args: Vec<Bound<'_, PyAny>> = args.iter().collect();
    args.extend(size.cloned());
    let (low, high, size) = match args.as_slice() {
        [high, size] => (0, high.extract()?, size),
        [low, high, size] => (low.extract()?, high.extract()?, size),
        _ => return Err(PyTypeError::new_err("randint takes (high, size) or (low, high, size)")),
    };
    let session = session::ready_current(py)?;
    source::note(py);
    let shape = convert::shape(&convert::ints(size, "size")?)?;
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(DType::I64);
    Ok(PyTensor(Tensor::randint(&session, low, high, shape, dtype).py()?))
}

macro_rules! likes {
    ($($(#[$doc:meta])* $name:ident: $make:expr;)*) => {
        $($(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (other, dtype=None, requires_grad=false))]
        pub(super) fn $name(
            py: Python<'_>,
            other: &PyTensor,
            dtype: Option<&Bound<'_, PyAny>>,
            requires_grad: bool,
        ) -> PyResult<PyTensor> {
            let session = session::ready_session(py, &other.0)?;
            source::note(py);
            let dtype = dtype::parse_optional(dtype)?.unwrap_or(other.0.dtype());
            finish($make(&session, other.0.shape(), dtype).py()?, requires_grad)
        })*
    };
}

likes! {
    /// Return a tensor of zeros, with the shape and dtype of another tensor.
    zeros_like: filled_with_zeros;
    /// Return a tensor of zeros: the same as `zeros_like`.
    empty_like: filled_with_zeros;
    /// Return a tensor of ones, with the shape and dtype of another tensor.
    ones_like: filled_with_ones;
    /// Return uniform random numbers in [0, 1), with the shape and dtype of another tensor.
    rand_like: Tensor::rand;
    /// Return standard normal random numbers, with the shape and dtype of another tensor.
    randn_like: Tensor::randn;
}

/// Return a tensor filled with one number, with the shape and dtype of another tensor.
#[pyfunction]
#[pyo3(signature = (other, fill_value, dtype=None, requires_grad=false))]
pub(super) fn full_like(
    py: Python<'_>,
    other: &PyTensor,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let session = session::ready_session(py, &other.0)?;
    source::note(py);
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(other.0.dtype());
    finish(filled(&session, other.0.shape(), fill_value, Some(dtype))?, requires_grad)
}

/// Return random integers in [low, high), or in [0, low) without `high`, with the shape and dtype
/// of another tensor.
#[pyfunction]
#[pyo3(signature = (other, low, high=None, dtype=None))]
pub(super) fn randint_like(
    py: Python<'_>,
    other: &PyTensor,
    low: i64,
    high: Option<i64>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let session = session::ready_session(py, &other.0)?;
    source::note(py);
    let (low, high) = high.map_or((0, low), |high| (low, high));
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(other.0.dtype());
    Ok(PyTensor(Tensor::randint(&session, low, high, other.0.shape(), dtype).py()?))
}
