//! Functions that make tensors.

use gt::ir::ops::ternary;
use gt::ir::{Operand, shape::axis as check_axis};
use gt::{DType, Scalar, Session, Shape, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::IntoPython;
use crate::tensor::{PyTensor, Value};
use crate::{convert, dtype, session, source};

/// Asks for gradients if wanted; a dtype without them becomes float32 first.
fn finish(tensor: Tensor, requires_grad: bool) -> PyResult<PyTensor> {
    if !requires_grad {
        return Ok(PyTensor(tensor));
    }
    let tensor = if tensor.dtype().is_float() { tensor } else { tensor.cast(DType::F32).py()? };
    tensor.set_requires_grad(true).py()?;
    Ok(PyTensor(tensor))
}

/// A tensor from numbers, nested lists, an array or another tensor.
#[pyfunction]
#[pyo3(signature = (data, dtype=None, requires_grad=false))]
fn tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let session = session::ready_current(py)?;
    source::note(py);
    let tensor = convert::tensor(&session, data, dtype::parse_optional(dtype)?)?;
    finish(tensor, requires_grad)
}

/// A tensor from numbers, nested lists or an array, in the session of another tensor.
#[pyfunction]
#[pyo3(signature = (other, data, dtype=None))]
fn tensor_beside(
    py: Python<'_>,
    other: &PyTensor,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let session = session::ready_session(py, &other.0)?;
    source::note(py);
    Ok(PyTensor(convert::tensor(&session, data, dtype::parse_optional(dtype)?)?))
}

/// The tensor itself, or one from numbers, nested lists or an array.
#[pyfunction]
#[pyo3(signature = (data, dtype=None))]
fn as_tensor(
    py: Python<'_>,
    data: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<PyTensor>> {
    if let Ok(given) = data.cast::<PyTensor>() {
        let wanted = dtype::parse_optional(dtype)?;
        if wanted.is_none_or(|wanted| wanted == given.get().0.dtype()) {
            return Ok(given.clone().unbind());
        }
    }
    Py::new(py, tensor(py, data, dtype, false)?)
}

/// A tensor with the values and dtype of a NumPy array.
#[pyfunction]
#[pyo3(signature = (array, requires_grad=false))]
fn from_numpy(py: Python<'_>, array: &Bound<'_, PyAny>, requires_grad: bool) -> PyResult<PyTensor> {
    let session = session::ready_current(py)?;
    source::note(py);
    let data = convert::from_array(array, None)?;
    finish(Tensor::from_data(&session, data), requires_grad)
}

fn filled_with_zeros(session: &Session, shape: Shape, dtype: DType) -> gt::Result<Tensor> {
    Tensor::full(session, shape, 0i64, dtype)
}

fn filled_with_ones(session: &Session, shape: Shape, dtype: DType) -> gt::Result<Tensor> {
    Tensor::full(session, shape, 1i64, dtype)
}

macro_rules! shaped {
    ($($(#[$doc:meta])* $name:ident($default:expr): $make:expr;)*) => {
        $($(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (*shape, dtype=None, requires_grad=false))]
        fn $name(
            py: Python<'_>,
            shape: &Bound<'_, PyTuple>,
            dtype: Option<&Bound<'_, PyAny>>,
            requires_grad: bool,
        ) -> PyResult<PyTensor> {
            let session = session::ready_current(py)?;
            source::note(py);
            let shape = convert::shape_from_args(shape)?;
            let dtype = dtype::parse_optional(dtype)?.unwrap_or($default);
            finish($make(&session, shape, dtype).py()?, requires_grad)
        })*
    };
}

shaped! {
    /// A tensor of zeros.
    zeros(DType::F32): filled_with_zeros;
    /// The same as zeros.
    empty(DType::F32): filled_with_zeros;
    /// A tensor of ones.
    ones(DType::F32): filled_with_ones;
    /// Random numbers from 0 up to 1.
    rand(DType::F32): Tensor::rand;
    /// Random numbers of the normal distribution.
    randn(DType::F32): Tensor::randn;
}

/// A tensor of a shape filled with one number.
#[pyfunction]
#[pyo3(signature = (shape, fill_value, dtype=None, requires_grad=false))]
fn full(
    py: Python<'_>,
    shape: &Bound<'_, PyAny>,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let session = session::ready_current(py)?;
    source::note(py);
    let shape = convert::shape(&convert::ints(shape, "the shape")?)?;
    let value = number(fill_value, "fill_value")?;
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(value.default_dtype());
    convert::check_fits(value, dtype)?;
    finish(Tensor::full(&session, shape, value, dtype).py()?, requires_grad)
}

/// A number, or a tensor or array of one.
pub fn number(given: &Bound<'_, PyAny>, name: &str) -> PyResult<Scalar> {
    if let Some(value) = convert::scalar(given)? {
        return Ok(value);
    }
    if given.hasattr("item")?
        && let Some(value) = convert::scalar(&given.call_method0("item")?)?
    {
        return Ok(value);
    }
    Err(PyTypeError::new_err(format!("{name} must be a number, not {}", given.get_type().name()?)))
}

/// Whole numbers from low up to but without high: `randint(high, size)`, `randint(low, high, size)`.
#[pyfunction]
#[pyo3(signature = (*args, size=None, dtype=None))]
fn randint(
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

/// Numbers in steps: `arange(end)`, `arange(start, end)`, `arange(start, end, step)`.
#[pyfunction]
#[pyo3(signature = (start, end=None, step=None, dtype=None))]
fn arange(
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
    let default = if whole { DType::I64 } else { DType::F32 };
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(default);
    let session = session::ready_current(py)?;
    source::note(py);
    Ok(PyTensor(Tensor::arange(&session, start, end, step, dtype).py()?))
}

/// Whole numbers from 0 up to but without `n`, in the session of another tensor.
#[pyfunction]
fn arange_beside(py: Python<'_>, other: &PyTensor, n: i64) -> PyResult<PyTensor> {
    let session = session::ready_session(py, &other.0)?;
    source::note(py);
    let (start, end, step) = (Scalar::Int(0), Scalar::Int(n), Scalar::Int(1));
    Ok(PyTensor(Tensor::arange(&session, start, end, step, DType::I64).py()?))
}

/// `steps` numbers evenly from start to end, both included.
#[pyfunction]
#[pyo3(signature = (start, end, steps, dtype=None))]
fn linspace(
    py: Python<'_>,
    start: &Bound<'_, PyAny>,
    end: &Bound<'_, PyAny>,
    steps: i64,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let (start, end) = (number(start, "start")?, number(end, "end")?);
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(DType::F32);
    let session = session::ready_current(py)?;
    source::note(py);
    Ok(PyTensor(Tensor::linspace(&session, start, end, steps, dtype).py()?))
}

/// Ones on the diagonal of n x m, zeros elsewhere.
#[pyfunction]
#[pyo3(signature = (n, m=None, dtype=None))]
fn eye(
    py: Python<'_>,
    n: i64,
    m: Option<i64>,
    dtype: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyTensor> {
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(DType::F32);
    let session = session::ready_current(py)?;
    source::note(py);
    Ok(PyTensor(Tensor::eye(&session, n, m.unwrap_or(n), dtype).py()?))
}

macro_rules! likes {
    ($($(#[$doc:meta])* $name:ident: $make:expr;)*) => {
        $($(#[$doc])*
        #[pyfunction]
        #[pyo3(signature = (other, dtype=None, requires_grad=false))]
        fn $name(
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
fn full_like(
    py: Python<'_>,
    other: &PyTensor,
    fill_value: &Bound<'_, PyAny>,
    dtype: Option<&Bound<'_, PyAny>>,
    requires_grad: bool,
) -> PyResult<PyTensor> {
    let session = session::ready_session(py, &other.0)?;
    source::note(py);
    let value = number(fill_value, "fill_value")?;
    let dtype = dtype::parse_optional(dtype)?.unwrap_or(other.0.dtype());
    convert::check_fits(value, dtype)?;
    finish(Tensor::full(&session, other.0.shape(), value, dtype).py()?, requires_grad)
}

/// Random whole numbers from low up to but without high, of the shape of another.
#[pyfunction]
#[pyo3(signature = (other, low, high=None, dtype=None))]
fn randint_like(
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

/// The tensors of a list; `function` names who asks, for errors.
fn list(tensors: &Bound<'_, PyAny>, function: &str) -> PyResult<Vec<Tensor>> {
    let kind = |given: &Bound<'_, PyAny>| {
        let name = given.get_type().name();
        name.map_or_else(|_| "something else".into(), |name| name.to_string())
    };
    let items = tensors.try_iter().map_err(|_| {
        let kind = kind(tensors);
        PyTypeError::new_err(format!("{function} takes a list of tensors, {kind} was given"))
    })?;
    items
        .map(|item| {
            let item = item?;
            match item.cast::<PyTensor>() {
                Ok(tensor) => Ok(tensor.get().0.clone()),
                Err(_) => Err(PyTypeError::new_err(format!(
                    "{function} takes a list of tensors, one with {} was given\n  hint: gt.tensor(...)",
                    kind(&item)
                ))),
            }
        })
        .collect()
}

/// Tensors one after another along an axis.
#[pyfunction]
#[pyo3(signature = (tensors, axis=None, *, dim=None))]
fn cat(
    py: Python<'_>,
    tensors: &Bound<'_, PyAny>,
    axis: Option<i64>,
    dim: Option<i64>,
) -> PyResult<PyTensor> {
    source::note(py);
    Ok(PyTensor(Tensor::cat(&list(tensors, "cat")?, convert::axis(axis, dim, Some(0))?).py()?))
}

/// Tensors of one shape along a new axis.
#[pyfunction]
#[pyo3(signature = (tensors, axis=None, *, dim=None))]
fn stack(
    py: Python<'_>,
    tensors: &Bound<'_, PyAny>,
    axis: Option<i64>,
    dim: Option<i64>,
) -> PyResult<PyTensor> {
    source::note(py);
    Ok(PyTensor(Tensor::stack(&list(tensors, "stack")?, convert::axis(axis, dim, Some(0))?).py()?))
}

/// The first where the condition holds, the second elsewhere.
#[pyfunction]
#[pyo3(name = "where")]
fn select(
    py: Python<'_>,
    condition: &Bound<'_, PyAny>,
    input: &Bound<'_, PyAny>,
    other: &Bound<'_, PyAny>,
) -> PyResult<PyTensor> {
    let condition = condition.cast::<PyTensor>().map_err(|_| {
        PyTypeError::new_err(format!("where: the condition must be a bool tensor, not {condition}"))
    })?;
    let condition = condition.get();
    let session = session::ready_session(py, &condition.0)?;
    source::note(py);
    let (a, b) = (Value::parse(&condition.0, input)?, Value::parse(&condition.0, other)?);
    let operands = [Operand::Tensor(&condition.0), a.operand(), b.operand()];
    Ok(PyTensor(Tensor::apply(&session, &ternary::WHERE, &operands, Default::default()).py()?))
}

/// The shape that shapes broadcast to.
#[pyfunction]
#[pyo3(signature = (*shapes))]
fn broadcast_shapes<'py>(
    py: Python<'py>,
    shapes: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut whole = Shape::SCALAR;
    for given in shapes.iter() {
        let shape = convert::shape(&convert::ints(&given, "the shape")?)?;
        whole = whole.broadcast(&shape, "broadcast_shapes").map_err(gt::ClientError::from).py()?;
    }
    PyTuple::new(py, whole.dims())
}

/// An axis counted from the front.
#[pyfunction]
fn normalize_axis(axis: i64, rank: usize) -> PyResult<usize> {
    check_axis(axis, rank, "axis").map_err(gt::ClientError::from).py()
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    macro_rules! add {
        ($($name:ident),* $(,)?) => {
            $(module.add_function(wrap_pyfunction!($name, module)?)?;)*
        };
    }
    add!(
        tensor,
        tensor_beside,
        arange_beside,
        from_numpy,
        zeros,
        empty,
        as_tensor,
        ones,
        rand,
        randn,
        full,
        randint,
        arange,
        linspace,
        eye,
        zeros_like,
        empty_like,
        ones_like,
        rand_like,
        randn_like,
        full_like,
        randint_like,
        cat,
        stack,
        select,
        broadcast_shapes,
        normalize_axis,
    );
    Ok(())
}
