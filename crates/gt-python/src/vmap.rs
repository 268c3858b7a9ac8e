//! Levels of `vmap`, for `gt.func.vmap`.

use std::sync::Arc;

use gt::vmap::{self, Level, Randomness};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPython;
use crate::tensor::PyTensor;
use crate::{session, source};

/// A level of nested `vmap` calls.
#[pyclass(module = "gt", frozen)]
pub struct VmapLevel(Arc<Level>);

#[pymethods]
impl VmapLevel {
    /// End the level.
    fn exit(&self) {
        self.0.exit();
    }

    /// Return whether a tensor is mapped over at this level.
    fn maps(&self, tensor: &PyTensor) -> bool {
        tensor.0.is_mapped_at(&self.0)
    }

    /// Return the tensor mapped over its first axis at this level.
    fn enter(&self, py: Python<'_>, tensor: &PyTensor) -> PyResult<PyTensor> {
        session::ready(py, &tensor.0)?;
        source::note(py);
        tensor.0.enter_level(&self.0).py().map(PyTensor)
    }

    /// Return the tensor with this level's batch axis in front, no longer mapped over at this
    /// level.
    fn leave(&self, py: Python<'_>, tensor: &PyTensor) -> PyResult<PyTensor> {
        session::ready(py, &tensor.0)?;
        source::note(py);
        tensor.0.leave_level(&self.0).py().map(PyTensor)
    }
}

/// Begin a level with a batch of `size`, and return it.
#[pyfunction]
fn vmap_level(py: Python<'_>, size: usize, randomness: &str) -> PyResult<VmapLevel> {
    let randomness = Randomness::from_name(randomness).ok_or_else(|| {
        PyValueError::new_err(format!(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        ))
    })?;
    let session = session::ready_current(py)?;
    Ok(VmapLevel(Level::enter(&session, size, randomness)))
}

/// Return whether this thread is inside a `vmap`.
#[pyfunction]
fn in_vmap() -> bool {
    vmap::is_active()
}

/// Return whether a tensor is mapped over by a `vmap`; its values then differ for each batch entry.
#[pyfunction]
fn is_batched(tensor: &PyTensor) -> bool {
    tensor.0.is_batched()
}

/// Return the values of the whole batch without history, with the batch axes in front.
#[pyfunction]
fn whole_batch(tensor: &PyTensor) -> PyTensor {
    PyTensor(tensor.0.whole())
}

/// Return whether a tensor's gradient reaches a leaf or recorded tensor other than `inputs`.
#[pyfunction]
fn reaches_others(tensor: &PyTensor, inputs: Vec<PyRef<'_, PyTensor>>) -> bool {
    let inputs: Vec<_> = inputs.iter().map(|input| input.0.clone()).collect();
    gt::tape::reaches_others(&tensor.0, &inputs)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<VmapLevel>()?;
    module.add_function(wrap_pyfunction!(vmap_level, module)?)?;
    module.add_function(wrap_pyfunction!(in_vmap, module)?)?;
    module.add_function(wrap_pyfunction!(is_batched, module)?)?;
    module.add_function(wrap_pyfunction!(whole_batch, module)?)?;
    module.add_function(wrap_pyfunction!(reaches_others, module)?)
}
