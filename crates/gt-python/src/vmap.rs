//! Levels of `vmap`, and the tensors that enter and leave them.

use std::sync::Arc;

use gt::vmap::{self, Level, Randomness};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::IntoPython;
use crate::tensor::PyTensor;
use crate::{session, source};

/// One `vmap` that runs.
#[pyclass(module = "gt", frozen)]
pub struct VmapLevel(Arc<Level>);

#[pymethods]
impl VmapLevel {
    /// Ends it.
    fn exit(&self) {
        self.0.exit();
    }

    /// Whether a tensor is mapped over at this level.
    fn maps(&self, tensor: &PyTensor) -> bool {
        tensor.0.is_mapped_at(&self.0)
    }

    /// A tensor mapped over its first axis.
    fn enter(&self, py: Python<'_>, tensor: &PyTensor) -> PyResult<PyTensor> {
        session::ready(py, &tensor.0)?;
        source::note(py);
        tensor.0.enter_level(&self.0).py().map(PyTensor)
    }

    /// A tensor with the batch axis in front.
    fn leave(&self, py: Python<'_>, tensor: &PyTensor) -> PyResult<PyTensor> {
        session::ready(py, &tensor.0)?;
        source::note(py);
        tensor.0.leave_level(&self.0).py().map(PyTensor)
    }
}

/// Begins a level for a batch of `size`.
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

/// Whether this thread is inside a `vmap`.
#[pyfunction]
fn in_vmap() -> bool {
    vmap::is_active()
}

/// Whether a tensor is mapped over by a `vmap`, so that it has no values of its own.
#[pyfunction]
fn is_batched(tensor: &PyTensor) -> bool {
    tensor.0.is_batched()
}

/// The values of the whole batch without history, with the batch axes in front.
#[pyfunction]
fn whole_batch(tensor: &PyTensor) -> PyTensor {
    PyTensor(tensor.0.whole())
}

/// Whether a tensor's gradient goes to anything other than what is computed from `inputs`.
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
