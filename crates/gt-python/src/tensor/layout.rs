//! Strides, contiguity and views.

use gt::tensor::strides::Strided;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::PyTensor;
use crate::error::{IntoPython, to_python};
use crate::{argument, convert, session, source};

#[pymethods]
impl PyTensor {
    /// Return the strides of all axes as a tuple, or the stride of one axis, in elements.
    #[pyo3(signature = (dim=None))]
    fn stride(&self, py: Python<'_>, dim: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        let strided = self.0.strided();
        let rank = strided.shape.rank();
        let strides = PyTuple::new(py, &strided.strides[..rank])?;
        let Some(dim) = dim else { return Ok(strides.into_any().unbind()) };
        let dim = argument::axis("stride", "dim", dim)?;
        let axis = gt::ir::shape::axis(dim, rank, "stride");
        Ok(strides.get_item(axis.map_err(|error| to_python(error.into()))?)?.unbind())
    }

    /// Return the offset of the first element in the shared memory, in elements.
    fn storage_offset(&self) -> i64 {
        self.0.strided().offset
    }

    /// Return whether the elements are in row-major order without gaps.
    #[pyo3(signature = (memory_format=None))]
    fn is_contiguous(&self, memory_format: Option<&Bound<'_, PyAny>>) -> bool {
        let _ = memory_format;
        self.0.strided().is_contiguous()
    }

    /// Return the tensor itself if it is contiguous, else a contiguous copy.
    #[pyo3(signature = (memory_format=None))]
    fn contiguous(
        slf: &Bound<'_, Self>,
        memory_format: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyTensor>> {
        let _ = memory_format;
        if slf.get().0.strided().is_contiguous() {
            return Ok(slf.clone().unbind());
        }
        source::note(slf.py());
        Py::new(slf.py(), PyTensor(slf.get().0.copy().py()?))
    }

    /// Return whether the tensor is a view of another one.
    fn _is_view(&self) -> bool {
        self.0.is_view()
    }

    /// Return a view of the elements at the indices `places`: along the axis `dim`, or without one
    /// in row-major order.
    #[pyo3(name = "_view_at")]
    fn view_at(
        &self,
        py: Python<'_>,
        dim: Option<usize>,
        places: &PyTensor,
        size: &Bound<'_, PyAny>,
        stride: &Bound<'_, PyAny>,
        storage_offset: i64,
    ) -> PyResult<PyTensor> {
        let shape = convert::shape(&convert::ints(size, "the shape")?)?;
        let strides = convert::ints(stride, "the strides")?;
        session::ready(py, &self.0)?;
        source::note(py);
        self.0.view_at(dim, &places.0, shape, &strides, storage_offset).py().map(PyTensor)
    }

    /// Return a view of the elements at `storage_offset + index · stride` of this contiguous
    /// tensor.
    #[pyo3(name = "_restride")]
    fn restride(
        &self,
        py: Python<'_>,
        size: &Bound<'_, PyAny>,
        stride: &Bound<'_, PyAny>,
        storage_offset: i64,
    ) -> PyResult<PyTensor> {
        let shape = convert::shape(&convert::ints(size, "the shape")?)?;
        let mut to = Strided { offset: storage_offset, ..Strided::contiguous(shape) };
        let strides = convert::ints(stride, "the strides")?;
        to.strides.iter_mut().zip(&strides).for_each(|(own, &given)| *own = given);
        session::ready(py, &self.0)?;
        source::note(py);
        self.0.restride(&to).py().map(PyTensor)
    }

    /// Return a view with another shape over the same memory.
    ///
    /// Raises:
    ///     RuntimeError: the strides do not allow it, as of a transposed tensor; `reshape` copies.
    #[pyo3(name = "_view", signature = (*shape))]
    fn view(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let dims = convert::ints_from_args(shape, "the shape")?;
        session::ready(py, &self.0)?;
        source::note(py);
        let view = self.0.reshape(&dims).py()?;
        if view.is_view() || view.shape().numel() == 0 {
            return Ok(PyTensor(view));
        }
        Err(PyRuntimeError::new_err(format!(
            "view: a tensor of shape {} with strides {:?} cannot be seen as {}\n  hint: reshape(...) copies where it must",
            self.0.shape(),
            &self.0.strided().strides[..self.0.rank()],
            view.shape(),
        )))
    }
}
