//! Which engines a session has that was not told.

use pyo3::prelude::*;

use super::PythonEngine;

/// The engine that GT_BACKEND names, or else PyTorch's where it sees a GPU.
fn backend(py: Python<'_>) -> PyResult<String> {
    py.import("gt.engines")?.call_method0("default")?.extract()
}

/// How many workers an embedded session has that was not told: one for each GPU, or one.
pub fn default_workers(py: Python<'_>) -> PyResult<usize> {
    if backend(py)? != "pytorch" {
        return Ok(1);
    }
    let gpus: usize = py.import("gt.engines")?.call_method0("sees_gpu")?.extract()?;
    Ok(gpus.max(1))
}

/// The engines of embedded workers; `None` if they are native.
pub fn embedded_engines(workers: usize) -> PyResult<Option<Vec<PythonEngine>>> {
    Python::attach(|py| {
        let name = backend(py)?;
        let engine = |index| PythonEngine::load(py, &name, index);
        (0..workers).map(engine).collect()
    })
}
