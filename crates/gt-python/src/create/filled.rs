//! Tensors of a given shape, or that of another tensor, filled with one number or with random
//! numbers.

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
    /// A tensor of zeros.
    zeros: filled_with_zeros;
    /// The same as zeros.
    empty: filled_with_zeros;
    /// A tensor of ones.
    ones: filled_with_ones;
    /// Random numbers from 0 up to 1.
    rand: Tensor::rand;
    /// Random numbers of the normal distribution.
    randn: Tensor::randn;
}

/// A tensor of a shape filled with one number.
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

/// A tensor of one number throughout, of its own dtype where none is given.
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

/// Whole numbers from low up to but without high: `randint(high, size)`, `randint(low, high,
/// size)`.
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
    /// A tensor of zeros, of the shape and dtype of another.
    zeros_like: filled_with_zeros;
    /// The same as zeros_like.
    empty_like: filled_with_zeros;
    /// A tensor of ones, of the shape and dtype of another.
    ones_like: filled_with_ones;
    /// Random numbers from 0 up to 1, of the shape and dtype of another.
    rand_like: Tensor::rand;
    /// Random numbers of the normal distribution, of the shape and dtype of another.
    randn_like: Tensor::randn;
}

/// A tensor of one number, of the shape and dtype of another.
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

/// Random whole numbers from low up to but without high, of the shape of another.
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
