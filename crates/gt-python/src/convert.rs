//! Python numbers, lists, axes and shapes as Rust values.

use bytes::Bytes;
use gt::ir::number;
use gt::ir::shape::MAX_RANK;
use gt::tensor::default_dtype::default_dtype;
use gt::{DType, Scalar, Session, Shape, Tensor, TensorData};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyComplex, PyFloat, PyInt, PyList, PyRange, PyTuple};
use smallvec::SmallVec;

use crate::array;
use crate::error::{IntoPython, to_python};
use crate::tensor::PyTensor;

/// Axes, lengths or strides.
pub type Ints = SmallVec<[i64; 8]>;

/// Returns the value of a Python bool, int or float; `None` for other objects.
pub fn scalar(given: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
    if given.is_exact_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::Float(given.extract()?)));
    }
    if given.is_instance_of::<PyBool>() {
        return Ok(Some(Scalar::Bool(given.extract()?)));
    }
    if given.is_instance_of::<PyInt>() {
        let value = given.extract::<i64>().map_err(|_| {
            PyValueError::new_err(format!("the number {given} does not fit into int64"))
        })?;
        return Ok(Some(Scalar::Int(value)));
    }
    if given.is_instance_of::<PyFloat>() {
        return Ok(Some(Scalar::Float(given.extract()?)));
    }
    Ok(None)
}

/// Returns the values of an int or of an iterable of ints; errors name them `what`.
pub fn ints(given: &Bound<'_, PyAny>, what: &str) -> PyResult<Ints> {
    if let Ok(one) = given.extract::<i64>() {
        return Ok(SmallVec::from_slice(&[one]));
    }
    let wrong = || {
        PyTypeError::new_err(format!(
            "{what} must be an int or a tuple of ints, not {}",
            given.get_type().name().map_or_else(|_| "this".into(), |name| name.to_string())
        ))
    };
    let items = given.try_iter().map_err(|_| wrong())?;
    items.map(|item| item?.extract::<i64>().map_err(|_| wrong())).collect()
}

/// Returns the ints of `*args` in a call `f(2, 3)` or `f((2, 3))`.
pub fn ints_from_args(args: &Bound<'_, PyTuple>, what: &str) -> PyResult<Ints> {
    match args.len() {
        1 => ints(&args.get_item(0)?, what),
        _ => ints(args.as_any(), what),
    }
}

/// Returns the shape of `*args` in a call `f(2, 3)` or `f((2, 3))`.
pub fn shape_from_args(args: &Bound<'_, PyTuple>) -> PyResult<Shape> {
    shape(&ints_from_args(args, "the shape")?)
}

/// Returns the shape with these lengths.
pub fn shape(dims: &[i64]) -> PyResult<Shape> {
    let lengths = dims.iter().map(|&dim| {
        usize::try_from(dim).map_err(|_| {
            PyValueError::new_err(format!(
                "a length must not be negative, {dim} was given in {dims:?}"
            ))
        })
    });
    let lengths = lengths.collect::<PyResult<Vec<usize>>>()?;
    Shape::new(&lengths).map_err(gt::ClientError::from).py()
}

/// Returns the axes of the arguments `axis` and `dim`, which are synonyms; none if neither is
/// given.
pub fn axes(axis: Option<&Bound<'_, PyAny>>, dim: Option<&Bound<'_, PyAny>>) -> PyResult<Ints> {
    match (axis, dim) {
        (Some(_), Some(_)) => {
            Err(PyTypeError::new_err("give axis or dim, which are the same, not both"))
        }
        (Some(given), None) | (None, Some(given)) if !given.is_none() => ints(given, "the axis"),
        _ => Ok(Ints::new()),
    }
}

/// Returns the axis of the arguments `axis` and `dim`, which are synonyms.
pub fn axis(axis: Option<i64>, dim: Option<i64>, default: Option<i64>) -> PyResult<i64> {
    match (axis, dim) {
        (Some(_), Some(_)) => {
            Err(PyTypeError::new_err("give axis or dim, which are the same, not both"))
        }
        (Some(given), None) | (None, Some(given)) => Ok(given),
        (None, None) => {
            default.ok_or_else(|| PyTypeError::new_err("an axis is needed: give axis (or dim)"))
        }
    }
}

/// Returns whether an object is exactly of a built-in list, tuple or number type. Looking up
/// attributes that such objects lack would take longer than reading them.
fn is_builtin(given: &Bound<'_, PyAny>) -> bool {
    given.is_exact_instance_of::<PyList>()
        || given.is_exact_instance_of::<PyTuple>()
        || given.is_exact_instance_of::<PyFloat>()
        || given.is_exact_instance_of::<PyInt>()
        || given.is_exact_instance_of::<PyBool>()
}

/// Returns a tensor with the values of a tensor, number, nested list or array.
pub fn tensor(
    session: &Session,
    given: &Bound<'_, PyAny>,
    dtype: Option<DType>,
) -> PyResult<Tensor> {
    if let Ok(tensor) = given.cast::<PyTensor>() {
        let detached = tensor.get().0.without_history();
        return dtype.map_or(Ok(detached.clone()), |dtype| detached.cast(dtype).py());
    }
    if !is_builtin(given)
        && (given.hasattr("__array__")? || given.hasattr("__array_interface__")?)
    {
        return Ok(Tensor::from_data(session, array::from_array(given, dtype)?));
    }
    Ok(Tensor::from_data(session, from_list(given, dtype)?))
}

/// Returns the values of a number or nested list. Without a dtype, bools become bool, and other
/// numbers the default dtype, or its complex counterpart if one of them is complex.
fn from_list(given: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<TensorData> {
    let mut list = Flattened::default();
    list.add(given, 0)?;
    let all_bools =
        !list.values.is_empty() && list.values.iter().all(|value| matches!(value, Scalar::Bool(_)));
    let dtype = match dtype {
        Some(dtype) if !dtype.is_complex() && !list.imaginary.is_empty() => {
            return Err(PyTypeError::new_err(format!(
                "a complex number cannot be stored as {dtype}\n  hint: give a complex dtype, or no dtype"
            )));
        }
        Some(dtype) => dtype,
        None if !list.imaginary.is_empty() => default_dtype().to_complex(),
        None if all_bools => DType::Bool,
        None => {
            let dtype = default_dtype();
            list.values.iter().try_for_each(|&value| check_exact(value, dtype))?;
            dtype
        }
    };
    let mut bytes = Vec::with_capacity(list.values.len() * dtype.size());
    if list.imaginary.is_empty() {
        for value in list.values {
            check_whole(value, dtype)?;
            TensorData::encode(dtype, value, &mut bytes);
        }
    } else {
        list.imaginary.resize(list.values.len(), 0.0);
        for (value, imaginary) in list.values.into_iter().zip(list.imaginary) {
            TensorData::encode_complex(dtype, value.as_f64(), imaginary, &mut bytes);
        }
    }
    let data = TensorData::new(dtype, shape(&list.dims)?, Bytes::from(bytes));
    data.ok_or_else(|| PyValueError::new_err("the list changed while it was read"))
}

/// Checks that an integer is exact in the default dtype, to which lists of numbers are converted.
fn check_exact(value: Scalar, dtype: DType) -> PyResult<()> {
    let Scalar::Int(given) = value else { return Ok(()) };
    let kept = if dtype == DType::F64 { given as f64 as i128 } else { (given as f32) as i128 };
    if kept == i128::from(given) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{given} has more digits than {dtype}, the dtype of numbers without one, can hold\n  hint: give dtype=gt.int64, or gt.{dtype} to round it"
    )))
}

/// Checks that a number is in the range of an integer dtype; floating dtypes accept all.
fn check_whole(value: Scalar, dtype: DType) -> PyResult<()> {
    if dtype.range().is_none() || number::fits(value, dtype) {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "{value} cannot be stored as {dtype}\n  hint: give a dtype that holds it, or no dtype"
    )))
}

/// The numbers of a nested list in row-major order, and the shape found so far.
#[derive(Default)]
struct Flattened {
    /// The numbers, or the real parts of complex ones.
    values: Vec<Scalar>,
    /// The imaginary parts, up to that of the last complex number.
    imaginary: Vec<f64>,
    /// The length of the first list at each depth.
    dims: Vec<i64>,
    /// The depth of the numbers, once one was seen.
    depth: Option<usize>,
}

impl Flattened {
    fn add(&mut self, item: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if let Some(value) = self.number(item)? {
            if *self.depth.get_or_insert(depth) != depth || self.dims.len() > depth {
                return Err(ragged(depth, "a number", "a list"));
            }
            self.values.push(value);
            return Ok(());
        }
        if depth > MAX_RANK {
            // The limit also ends the recursion for a list that contains itself.
            let (rank, max) = (depth, MAX_RANK);
            return Err(to_python(gt::ir::Error::RankTooHigh { rank, max }.into()));
        }
        if !is_builtin(item) && item.hasattr("tolist")? {
            return self.add(&item.call_method0("tolist")?, depth);
        }
        if !is_list(item) && !item.is_instance_of::<PyRange>() {
            let name = item.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "a tensor is made from numbers, nested lists of numbers or arrays, not from {name}"
            )));
        }
        if self.depth.is_some_and(|known| known <= depth) {
            return Err(ragged(depth, "a list", "a number"));
        }
        let length = item.len()? as i64;
        match self.dims.get(depth) {
            None => self.dims.push(length),
            Some(&known) if known != length => {
                return Err(ragged(depth, &format!("length {length}"), &format!("length {known}")));
            }
            Some(_) => {}
        }
        for entry in item.try_iter()? {
            self.add(&entry?, depth + 1)?;
        }
        Ok(())
    }

    /// Returns the value of a Python or NumPy number, or of a tensor without axes; `None` for
    /// others.
    fn number(&mut self, item: &Bound<'_, PyAny>) -> PyResult<Option<Scalar>> {
        if let Ok(complex) = item.cast::<PyComplex>() {
            self.imaginary.resize(self.values.len(), 0.0);
            self.imaginary.push(complex.imag());
            return Ok(Some(Scalar::Float(complex.real())));
        }
        if item.is_instance_of::<PyInt>() && item.extract::<i64>().is_err() {
            // Too large for int64, but valid for a floating dtype.
            return Ok(Some(Scalar::Float(item.extract()?)));
        }
        if let Some(value) = scalar(item)? {
            return Ok(Some(value));
        }
        if is_list(item) {
            return Ok(None);
        }
        if item.hasattr("item")? && item.getattr("shape")?.len()? == 0 {
            return self.number(&item.call_method0("item")?);
        }
        Ok(None)
    }
}

fn is_list(item: &Bound<'_, PyAny>) -> bool {
    item.is_instance_of::<PyList>() || item.is_instance_of::<PyTuple>()
}

fn ragged(depth: usize, found: &str, expected: &str) -> PyErr {
    PyValueError::new_err(format!(
        "the nested lists are ragged: {found} at depth {depth}, where {expected} came before\n  hint: all rows must be of one length"
    ))
}
