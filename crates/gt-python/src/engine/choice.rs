//! The default engine and number of workers of embedded sessions.

use pyo3::prelude::*;

use super::PythonEngine;

/// Returns the engine that GT_BACKEND names; without it, `pytorch` if PyTorch sees a GPU.
pub fn backend(py: Python<'_>) -> PyResult<String> {
    py.import("gt.engines")?.call_method0("default")?.extract()
}

/// Returns the default number of workers of an embedded session: one for each GPU, or one.
pub fn default_workers(py: Python<'_>) -> PyResult<usize> {
    if backend(py)? != "pytorch" {
        return Ok(1);
    }
    let gpus: usize = py.import("gt.engines")?.call_method0("sees_gpu")?.extract()?;
    Ok(gpus.max(1))
}

/// Returns the engines of embedded workers; `None` if they are native.
pub fn embedded_engines(workers: usize) -> PyResult<Option<Vec<PythonEngine>>> {
    Python::attach(|py| engines(py, &backend(py)?, workers))
}

/// Returns engines of a name; `None` if they are native.
pub fn engines(py: Python<'_>, name: &str, workers: usize) -> PyResult<Option<Vec<PythonEngine>>> {
    (0..workers).map(|index| PythonEngine::load(py, name, index)).collect()
}
