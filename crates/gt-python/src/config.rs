//! Signal configurations from YAML and from Python.

use gt::config::{self, SignalConfig, registry};
use gt::ir::Rescale;
use gt::ir::signal::{MeshAxis, Shard};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The worker numbers (None for all), and for each axis of the mesh its name (empty for the only
/// one), its length (0 for all workers) and the tensor axis that is sharded over it.
type PyShard = (Option<Vec<u32>>, Vec<(String, u32, Option<i64>)>);

/// The name, sharding, backward signal and `compile` flag of a signal.
type Signal = (String, Option<PyShard>, Option<String>, bool);

/// Parse a YAML configuration; `file` names it in errors.
///
/// Returns:
///     The signals, the number of slots of sessions, and whether workers that join add slots.
#[pyfunction]
fn parse_config(text: &str, file: &str) -> PyResult<(Vec<Signal>, Option<u32>, Option<bool>)> {
    let config::Config { signals, slots } =
        config::parse(text, file).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let shard = |shard: Shard| {
        let mesh = shard.mesh.into_iter().map(|axis| (axis.name, axis.length, axis.axis));
        (shard.workers, mesh.collect())
    };
    let signals = signals
        .into_iter()
        .map(|(name, signal)| (name, signal.shard.map(shard), signal.backward, signal.compile));
    Ok((signals.collect(), slots.slots, slots.elastic))
}

/// Set the default number of slots of sessions, and whether workers that join add slots.
#[pyfunction]
#[pyo3(signature = (slots=None, elastic=None))]
fn set_slots(slots: Option<u32>, elastic: Option<bool>) {
    registry::set_slots(Rescale { slots, elastic });
}

/// Set the configuration of a signal, for instructions issued from now on.
#[pyfunction]
fn register_signal(name: &str, shard: Option<PyShard>, backward: Option<String>, compile: bool) {
    let shard = shard.map(|(workers, mesh)| {
        let axis = |(name, length, axis)| MeshAxis { name, length, axis };
        Shard { workers, mesh: mesh.into_iter().map(axis).collect() }
    });
    registry::register(name, SignalConfig { shard, backward, compile });
}

/// Remove the configurations of all signals.
#[pyfunction]
fn clear_signals() {
    registry::clear();
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(parse_config, module)?)?;
    module.add_function(wrap_pyfunction!(register_signal, module)?)?;
    module.add_function(wrap_pyfunction!(set_slots, module)?)?;
    module.add_function(wrap_pyfunction!(clear_signals, module)?)
}
