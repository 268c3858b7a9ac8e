//! Functions that combine several tensors, and helpers for shapes and axes.

use gt::ir::ops::ternary;
use gt::ir::{Operand, shape::axis as check_axis};
use gt::{Shape, Tensor};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::IntoPython;
use crate::tensor::{PyOperand, PyTensor};
use crate::{convert, session, source};

/// Returns the tensors of a list; errors name `function`.
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

/// Return the concatenation of tensors along an existing axis, by default the first.
#[pyfunction]
#[pyo3(signature = (tensors, axis=None, *, dim=None))]
pub(super) fn cat(
    py: Python<'_>,
    tensors: &Bound<'_, PyAny>,
    axis: Option<i64>,
    dim: Option<i64>,
) -> PyResult<PyTensor> {
    source::note(py);
    Ok(PyTensor(Tensor::cat(&list(tensors, "cat")?, convert::axis(axis, dim, Some(0))?).py()?))
}

/// Return tensors of the same shape stacked along a new axis, by default the first.
#[pyfunction]
#[pyo3(signature = (tensors, axis=None, *, dim=None))]
pub(super) fn stack(
    py: Python<'_>,
    tensors: &Bound<'_, PyAny>,
    axis: Option<i64>,
    dim: Option<i64>,
) -> PyResult<PyTensor> {
    source::note(py);
    Ok(PyTensor(Tensor::stack(&list(tensors, "stack")?, convert::axis(axis, dim, Some(0))?).py()?))
}

/// Return elements of `input` where the bool tensor `condition` is true, and of `other` elsewhere.
/// The three are broadcast.
#[pyfunction]
#[pyo3(name = "where")]
pub(super) fn select(
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
    let (a, b) = (PyOperand::parse(&condition.0, input)?, PyOperand::parse(&condition.0, other)?);
    let operands = [Operand::Tensor(&condition.0), a.operand(), b.operand()];
    Ok(PyTensor(Tensor::apply(&session, &ternary::WHERE, &operands, Default::default()).py()?))
}

/// Return the shape to which all given shapes broadcast, as a tuple.
#[pyfunction]
#[pyo3(signature = (*shapes))]
pub(super) fn broadcast_shapes<'py>(
    py: Python<'py>,
    shapes: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let mut result = Shape::SCALAR;
    for given in shapes.iter() {
        let shape = convert::shape(&convert::ints(&given, "the shape")?)?;
        result =
            result.broadcast(&shape, "broadcast_shapes").map_err(gt::ClientError::from).py()?;
    }
    PyTuple::new(py, result.dims())
}

/// Return the non-negative index of an axis of a tensor with `rank` axes.
///
/// Raises:
///     IndexError: there is no such axis.
#[pyfunction]
pub(super) fn normalize_axis(axis: i64, rank: usize) -> PyResult<usize> {
    check_axis(axis, rank, "axis").map_err(gt::ClientError::from).py()
}
