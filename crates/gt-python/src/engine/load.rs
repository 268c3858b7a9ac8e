//! Loading an engine by its name.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use gt::NativeEngine;
use gt::drivers::gpu::GpuMonitor;
use gt::ir::{DType, ops};
use pyo3::exceptions::{PyRuntimeError, PySystemExit, PyTypeError};
use pyo3::prelude::*;

use super::convert::Classes;
use super::lowerings::{LoweringCache, ResultChecker};
use super::prepared_plan::CompileSettings;
use super::{PythonEngine, Watchdog};

impl PythonEngine {
    /// Loads an engine on the GPU with an index; returns `None` for the native one.
    pub fn load(py: Python<'_>, name: &str, index: usize) -> PyResult<Option<PythonEngine>> {
        if name == "native" {
            return Ok(None);
        }
        PythonEngine::construct(py, name, index).map(Some).map_err(|error| {
            // The waiting caller receives the error; the process must not exit.
            if error.is_instance_of::<PySystemExit>(py) {
                PyRuntimeError::new_err(format!("the engine '{name}' raises SystemExit: {error}"))
            } else {
                error
            }
        })
    }

    fn construct(py: Python<'_>, name: &str, index: usize) -> PyResult<PythonEngine> {
        let engines = py.import("gt.engines")?;
        let object = engines.call_method1("load", (name, index))?;
        let engine_name: String = object.getattr("name")?.extract()?;
        let rate: u64 = object.getattr("rate")?.extract()?;
        let factors: Option<String> = object.getattr("factors")?.extract()?;
        let named = |name: &String| DType::ALL.into_iter().find(|dtype| dtype.name() == name);
        let factors = factors.as_ref().and_then(named);
        let draws: bool = object.getattr("draws")?.extract()?;
        let mut lowers = vec![false; 1 + ops::ALL.iter().map(|o| o.id as usize).max().unwrap_or(0)];
        for operation in ops::ALL {
            let takes = object.call_method1("lowers", (operation.name,))?;
            lowers[operation.id as usize] = takes.extract()?;
        }
        let memory: Option<u64> = object.getattr("memory")?.extract()?;
        let gpu = object.getattr("gpu_uuid")?;
        let gpu: Option<String> = gpu.extract().map_err(|_| {
            PyTypeError::new_err(format!(
                "the engine '{engine_name}': gpu_uuid is {gpu:?}, expected a text or None"
            ))
        })?;
        let makes_views = object.getattr("makes_views")?.extract()?;
        let runs_ahead = object.getattr("runs_ahead")?.extract()?;
        let settings = CompileSettings::new(&object)?;
        Ok(PythonEngine {
            object: Arc::new(object.unbind()),
            name: engine_name,
            lowers,
            classes: Arc::new(Classes::new(py)?),
            lowerings: LoweringCache::default(),
            checker: ResultChecker::default(),
            settings,
            factors,
            memory,
            gpu: gpu.map(GpuMonitor::start),
            makes_views,
            runs_ahead,
            tally: Arc::default(),
            collectives: None,
            draws,
            native: NativeEngine::new(thread::available_parallelism().map_or(1, usize::from)),
            started: Instant::now(),
            rate,
            watchdog: Watchdog::new(rate),
        })
    }
}
