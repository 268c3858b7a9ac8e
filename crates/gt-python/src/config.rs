//! Signal configurations from YAML.

use gt::config;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Name, (axis, workers, replicated), backward, compile.
type Signal = (String, Option<(i64, Option<Vec<u32>>, bool)>, Option<String>, bool);

/// The signals of a YAML text; `file` names it in errors.
#[pyfunction]
fn parse_config(text: &str, file: &str) -> PyResult<Vec<Signal>> {
    let signals =
        config::parse(text, file).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let signals = signals.into_iter().map(|(name, signal)| {
        let shard = signal.shard.map(|shard| (shard.axis, shard.workers, shard.replicated));
        (name, shard, signal.backward, signal.compile)
    });
    Ok(signals.collect())
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_config, module)?)
}
