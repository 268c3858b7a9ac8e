//! Shape operations.

use gt::Tensor;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::PyTensor;
use crate::error::IntoPython;
use crate::{argument, convert, dtype, session, source};

/// Issues an operation on a tensor once its session can accept one.
fn on(
    py: Python<'_>,
    this: &PyTensor,
    operation: impl FnOnce(&Tensor) -> gt::Result<Tensor>,
) -> PyResult<PyTensor> {
    session::ready(py, &this.0)?;
    source::note(py);
    Ok(PyTensor(operation(&this.0).py()?))
}

#[pymethods]
impl PyTensor {
    /// Return the elements with another shape, as a view if possible; one length may be -1.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let dims = convert::ints_from_args(shape, "the shape")?;
        on(py, self, |tensor| tensor.reshape(&dims))
    }

    /// Return the tensor with the axes from `start_dim` to `end_dim` merged into one.
    #[pyo3(
        signature = (start_dim=None, end_dim=None),
        text_signature = "($self, start_dim=0, end_dim=-1)"
    )]
    fn flatten(
        &self,
        py: Python<'_>,
        start_dim: Option<&Bound<'_, PyAny>>,
        end_dim: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let axis = |name, given: Option<&Bound<'_, PyAny>>, default| {
            given.map_or(Ok(default), |given| argument::axis("flatten", name, given))
        };
        let start_dim = axis("start_dim", start_dim, 0)?;
        let end_dim = axis("end_dim", end_dim, -1)?;
        on(py, self, |tensor| tensor.flatten(start_dim, end_dim))
    }

    /// Return the tensor with two axes exchanged; without arguments the last two, as `.mT`.
    #[pyo3(signature = (dim0=None, dim1=None))]
    fn transpose(
        &self,
        py: Python<'_>,
        dim0: Option<&Bound<'_, PyAny>>,
        dim1: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let axis = |name, given: Option<&Bound<'_, PyAny>>| {
            given.map(|given| argument::axis("transpose", name, given)).transpose()
        };
        match (axis("dim0", dim0)?, axis("dim1", dim1)?) {
            (Some(first), Some(second)) => on(py, self, |tensor| tensor.transpose(first, second)),
            (None, None) => self.m_t(py),
            _ => Err(PyTypeError::new_err("transpose takes two axes or none")),
        }
    }

    /// The matrix with its axes exchanged.
    #[getter(T)]
    fn t_property(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, Tensor::t)
    }

    /// Return the matrix with its axes exchanged.
    fn t(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, Tensor::t)
    }

    /// The tensor with its last two axes exchanged.
    #[getter(mT)]
    fn m_t(&self, py: Python<'_>) -> PyResult<PyTensor> {
        if self.0.rank() < 2 {
            return on(py, self, Tensor::t);
        }
        on(py, self, |tensor| tensor.transpose(-2, -1))
    }

    /// Return the tensor without axes of length 1: all of them, or those given.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn squeeze(
        &self,
        py: Python<'_>,
        dim: Option<&Bound<'_, PyAny>>,
        axis: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let axes = convert::axes(axis, dim)?;
        on(py, self, |tensor| tensor.squeeze(&axes))
    }

    /// Return the tensor with a new axis of length 1 at an index.
    #[pyo3(signature = (dim=None, *, axis=None))]
    fn unsqueeze(&self, py: Python<'_>, dim: Option<i64>, axis: Option<i64>) -> PyResult<PyTensor> {
        let axis = convert::axis(axis, dim, None)?;
        on(py, self, |tensor| tensor.unsqueeze(axis))
    }

    /// Return a view broadcast to a shape; -1 keeps the length of an axis.
    #[pyo3(signature = (*shape))]
    fn expand(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let dims = convert::ints_from_args(shape, "the shape")?;
        on(py, self, |tensor| tensor.expand(&dims))
    }

    /// Return a view broadcast to the shape of another tensor.
    fn expand_as(&self, py: Python<'_>, other: &PyTensor) -> PyResult<PyTensor> {
        let dims: Vec<i64> = other.0.shape().iter().map(|&dim| dim as i64).collect();
        on(py, self, |tensor| tensor.expand(&dims))
    }

    /// Return a view broadcast to a shape, given as one tuple or as lengths.
    #[pyo3(signature = (*shape))]
    fn broadcast_to(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        self.expand(py, shape)
    }

    /// Return parts of one length, or of the lengths in a list, along an axis; the last may be
    /// shorter.
    #[pyo3(signature = (split_size, dim=None, *, axis=None))]
    fn split(
        &self,
        py: Python<'_>,
        split_size: &Bound<'_, PyAny>,
        dim: Option<i64>,
        axis: Option<i64>,
    ) -> PyResult<Vec<PyTensor>> {
        let along = convert::axis(axis, dim, Some(0))?;
        session::ready(py, &self.0)?;
        source::note(py);
        if let Ok(size) = split_size.extract::<i64>()
            && size < 0
        {
            return Err(PyValueError::new_err(format!(
                "split: the length of a part is {size}, expected 1 or more"
            )));
        }
        let parts = match split_size.extract::<usize>() {
            Ok(size) => self.0.split(size, along),
            Err(_) => {
                let lengths: Vec<usize> = split_size.extract().map_err(|_| {
                    let (name, expected) = ("split_size_or_sections", "a length or a list of them");
                    PyTypeError::new_err(argument::mismatch("split", name, expected, split_size))
                })?;
                self.0.split_sizes(&lengths, along)
            }
        };
        Ok(parts.py()?.into_iter().map(PyTensor).collect())
    }

    /// Return at most `chunks` parts of equal length along an axis; the last may be shorter.
    #[pyo3(signature = (chunks, dim=None, *, axis=None))]
    fn chunk(
        &self,
        py: Python<'_>,
        chunks: i64,
        dim: Option<i64>,
        axis: Option<i64>,
    ) -> PyResult<Vec<PyTensor>> {
        let along = convert::axis(axis, dim, Some(0))?;
        session::ready(py, &self.0)?;
        source::note(py);
        let chunks = usize::try_from(chunks).map_err(|_| {
            PyRuntimeError::new_err(format!(
                "chunk: {chunks} chunks are asked for, expected 1 or more"
            ))
        })?;
        Ok(self.0.chunk(chunks, along).py()?.into_iter().map(PyTensor).collect())
    }

    /// Return the elements `start` to `start + length` along an axis.
    #[pyo3(signature = (dim, start, length))]
    fn narrow(
        &self,
        py: Python<'_>,
        dim: &Bound<'_, PyAny>,
        start: &Bound<'_, PyAny>,
        length: &Bound<'_, PyAny>,
    ) -> PyResult<PyTensor> {
        let dim = argument::axis("narrow", "dim", dim)?;
        let start = argument::int("narrow", "start", start)?;
        let length = argument::int("narrow", "length", length)?;
        let size = self
            .0
            .shape()
            .get(
                gt::ir::shape::axis(dim, self.0.rank(), "narrow")
                    .map_err(gt::ClientError::from)
                    .py()?,
            )
            .copied();
        let size = size.unwrap_or(0) as i64;
        let from = if start < 0 { start + size } else { start };
        if from < 0 || length < 0 || from + length > size {
            return Err(PyIndexError::new_err(format!(
                "narrow: {length} elements from {start} on are not within axis {dim} of shape {}",
                self.0.shape()
            )));
        }
        on(py, self, |tensor| tensor.narrow(dim, from as usize, length as usize))
    }

    /// Return the values in another dtype; the tensor itself if it has the dtype.
    fn _cast(slf: &Bound<'_, Self>, dtype: &Bound<'_, PyAny>) -> PyResult<Py<PyTensor>> {
        let dtype = dtype::parse(dtype)?;
        if slf.get().0.dtype() == dtype {
            return Ok(slf.clone().unbind());
        }
        Py::new(slf.py(), on(slf.py(), slf.get(), |tensor| tensor.cast(dtype))?)
    }
}
