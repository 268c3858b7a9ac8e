//! Rearranging.

use gt::{DType, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::PyTensor;
use crate::error::IntoPython;
use crate::{convert, dtype, session, source};

/// Runs `operation` on a tensor once its session is ready.
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
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let dims = convert::ints_from_args(shape, "the shape")?;
        on(py, self, |tensor| tensor.reshape(&dims))
    }

    /// The same as reshape: there are no views.
    #[pyo3(signature = (*shape))]
    fn view(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        self.reshape(py, shape)
    }

    /// The axes from `start_dim` to `end_dim` as one.
    #[pyo3(signature = (start_dim=0, end_dim=-1))]
    fn flatten(&self, py: Python<'_>, start_dim: i64, end_dim: i64) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.flatten(start_dim, end_dim))
    }

    /// Two axes exchanged; without arguments the last two, as `.mT`.
    #[pyo3(signature = (dim0=None, dim1=None))]
    fn transpose(
        &self,
        py: Python<'_>,
        dim0: Option<i64>,
        dim1: Option<i64>,
    ) -> PyResult<PyTensor> {
        match (dim0, dim1) {
            (Some(first), Some(second)) => on(py, self, |tensor| tensor.transpose(first, second)),
            (None, None) => self.m_t(py),
            _ => Err(PyTypeError::new_err("transpose takes two axes or none")),
        }
    }

    #[getter(T)]
    fn t_property(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, Tensor::t)
    }

    /// A matrix with its axes exchanged.
    fn t(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, Tensor::t)
    }

    /// The last two axes exchanged.
    #[getter(mT)]
    fn m_t(&self, py: Python<'_>) -> PyResult<PyTensor> {
        if self.0.rank() < 2 {
            return on(py, self, Tensor::t);
        }
        on(py, self, |tensor| tensor.transpose(-2, -1))
    }

    #[pyo3(signature = (*dims))]
    fn permute(&self, py: Python<'_>, dims: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let order = convert::ints_from_args(dims, "the order of axes")?;
        on(py, self, |tensor| tensor.permute(&order))
    }

    /// Without axes of length 1: all of them, or those that are given.
    #[pyo3(signature = (axis=None, *, dim=None))]
    fn squeeze(
        &self,
        py: Python<'_>,
        axis: Option<&Bound<'_, PyAny>>,
        dim: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let axes = convert::axes(axis, dim)?;
        on(py, self, |tensor| tensor.squeeze(&axes))
    }

    /// With an axis of length 1 put in at a place.
    #[pyo3(signature = (axis=None, *, dim=None))]
    fn unsqueeze(&self, py: Python<'_>, axis: Option<i64>, dim: Option<i64>) -> PyResult<PyTensor> {
        let axis = convert::axis(axis, dim, None)?;
        on(py, self, |tensor| tensor.unsqueeze(axis))
    }

    #[pyo3(signature = (*shape))]
    fn expand(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let dims = convert::ints_from_args(shape, "the shape")?;
        on(py, self, |tensor| tensor.expand(&dims))
    }

    /// Expanded to the shape of another tensor.
    fn expand_as(&self, py: Python<'_>, other: &PyTensor) -> PyResult<PyTensor> {
        let dims: Vec<i64> = other.0.shape().iter().map(|&dim| dim as i64).collect();
        on(py, self, |tensor| tensor.expand(&dims))
    }

    /// Expanded to a shape, given as one tuple or as lengths.
    #[pyo3(signature = (*shape))]
    fn broadcast_to(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        self.expand(py, shape)
    }

    /// In reverse along axes, given one by one, as a tuple, or as `dims`.
    #[pyo3(signature = (*axes, dims=None))]
    fn flip(
        &self,
        py: Python<'_>,
        axes: &Bound<'_, PyTuple>,
        dims: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let axes = match dims {
            Some(dims) => convert::ints(dims, "the axes")?,
            None => convert::ints_from_args(axes, "the axes")?,
        };
        on(py, self, |tensor| tensor.flip(&axes))
    }

    #[pyo3(signature = (diagonal=0))]
    fn tril(&self, py: Python<'_>, diagonal: i64) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.tril(diagonal))
    }

    #[pyo3(signature = (diagonal=0))]
    fn triu(&self, py: Python<'_>, diagonal: i64) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.triu(diagonal))
    }

    /// Parts of one length, or of the lengths in a list, along an axis.
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
            Err(_) => self.0.split_sizes(&split_size.extract::<Vec<usize>>()?, along),
        };
        Ok(parts.py()?.into_iter().map(PyTensor).collect())
    }

    /// At most `chunks` parts of one length along an axis.
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

    fn gather(&self, py: Python<'_>, dim: i64, index: &PyTensor) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.gather(dim, &index.0))
    }

    /// Adds `src[i][j]` to `x[index[i][j]][j]` (for dim 0), wherever there is an index.
    fn scatter_add(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &PyTensor,
        src: &PyTensor,
    ) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.scatter_add(dim, &index.0, &src.0))
    }

    fn scatter_add_(
        slf: &Bound<'_, Self>,
        dim: i64,
        index: &PyTensor,
        src: &PyTensor,
    ) -> PyResult<Py<PyTensor>> {
        let sum = slf.get().scatter_add(slf.py(), dim, index, src)?;
        super::elementwise::assigned(slf, &sum, "scatter_add_")
    }

    fn index_add(
        &self,
        py: Python<'_>,
        dim: i64,
        index: &PyTensor,
        source: &PyTensor,
    ) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.index_add(dim, &index.0, &source.0))
    }

    fn index_select(&self, py: Python<'_>, dim: i64, index: &PyTensor) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.index_select(dim, &index.0))
    }

    /// The values in another dtype.
    fn to(&self, py: Python<'_>, dtype: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let dtype = dtype::parse(dtype)?;
        on(py, self, |tensor| tensor.cast(dtype))
    }

    /// The values as float32.
    fn float(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.cast(DType::F32))
    }

    /// The values as float64.
    fn double(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.cast(DType::F64))
    }

    /// The values as float16.
    fn half(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.cast(DType::F16))
    }

    /// The values as bfloat16.
    fn bfloat16(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.cast(DType::BF16))
    }

    /// The values as int64.
    fn long(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.cast(DType::I64))
    }

    /// The values as int32.
    fn int(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.cast(DType::I32))
    }

    /// The values as bool: whether they are not zero.
    fn bool(&self, py: Python<'_>) -> PyResult<PyTensor> {
        on(py, self, |tensor| tensor.cast(DType::Bool))
    }
}
