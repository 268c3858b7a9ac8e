//! Data for `gt.debug` and `gt.explain`, and a description of the instruction set for tests and
//! docs.

use gt::ir::explain::PlacedTensor;
use gt::ir::operation::{Gradient, Sample, SampleOperand};
use gt::ir::statistics::{FailureSummary, WorkerStats};
use gt::ir::{Attribute, Operation, ops};
use gt::tape;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::session::PySession;
use crate::tensor::PyTensor;
use crate::torch::kernel_cache;
use crate::{dtype, export, session};

/// Return the recorded operations that are still reachable, oldest first, as dicts.
#[pyfunction]
fn get_tape(py: Python<'_>) -> PyResult<Vec<Py<PyDict>>> {
    let entries = tape::tape().into_iter().map(|entry| {
        let dict = PyDict::new(py);
        dict.set_item("id", entry.number)?;
        dict.set_item("op", &*entry.operation)?;
        dict.set_item("inputs", entry.operands)?;
        dict.set_item("shape", convert_shape(py, &entry.output.shape)?)?;
        dict.set_item("dtype", entry.output.dtype.name())?;
        dict.set_item("signal", entry.signal)?;
        Ok(dict.unbind())
    });
    entries.collect()
}

fn convert_shape<'py>(
    py: Python<'py>,
    shape: &gt::Shape,
) -> PyResult<Bound<'py, pyo3::types::PyTuple>> {
    pyo3::types::PyTuple::new(py, shape.dims())
}

/// Return the statistics of the caches of recorded kernels, as dicts by kernel.
#[pyfunction]
fn get_cache_stats(py: Python<'_>) -> PyResult<Py<PyDict>> {
    let all = PyDict::new(py);
    for (name, stats) in kernel_cache::stats() {
        let dict = PyDict::new(py);
        dict.set_item("entries", stats.entries)?;
        dict.set_item("instructions", stats.weight)?;
        dict.set_item("hits", stats.hits)?;
        dict.set_item("misses", stats.misses)?;
        dict.set_item("evicted", stats.evicted)?;
        all.set_item(name, dict)?;
    }
    Ok(all.unbind())
}

/// Return the statistics of each worker as a dict, by worker name. Waits for the workers.
#[pyfunction]
fn get_worker_stats(py: Python<'_>) -> PyResult<Py<PyDict>> {
    let session = session::current()?;
    let workers = session::waiting(py, &session, |interrupt| session.worker_stats(interrupt))?;
    let threshold = session.hot_path_stats().hot_threshold;
    let all = PyDict::new(py);
    for worker in workers {
        let operations = PyDict::new(py);
        operations.set_item("total", worker.operations_total)?;
        operations.set_item("compiled", worker.operations_compiled)?;
        let eager = worker.operations_total - worker.operations_compiled;
        operations.set_item("eager", eager)?;
        operations.set_item("failed", worker.operations_failed)?;
        operations.set_item("skipped", worker.operations_skipped)?;
        let memory = PyDict::new(py);
        memory.set_item("tensors", worker.tensors)?;
        memory.set_item("bytes", worker.bytes)?;
        memory.set_item("bytes_peak", worker.bytes_peak)?;
        let stats = PyDict::new(py);
        stats.set_item("engine", &worker.engine)?;
        stats.set_item("operations", operations)?;
        stats.set_item("memory", memory)?;
        stats.set_item("hotpath", hot_paths(py, &worker, threshold)?)?;
        stats.set_item("compilation", compilation(py, &worker)?)?;
        all.set_item(worker.name, stats)?;
    }
    Ok(all.unbind())
}

/// Return the failures in this thread's session. Each is a tuple: the error text, the user's line,
/// the number of tensors left without a value, and the number of steps that were undone.
#[pyfunction]
fn failures(py: Python<'_>) -> PyResult<Vec<(String, Option<String>, u64, u64)>> {
    let session = session::current()?;
    let workers = session::waiting(py, &session, |interrupt| session.worker_stats(interrupt))?;
    let mut all: Vec<FailureSummary> = Vec::new();
    for failed in workers.into_iter().flat_map(|worker| worker.failed) {
        let is_same = |known: &&mut FailureSummary| {
            let (one, other) = (&known.failure, &failed.failure);
            (one.place, one.line, &one.reason) == (other.place, other.line, &other.reason)
        };
        match all.iter_mut().find(is_same) {
            // Several workers report the same one.
            Some(known) => {
                known.tensors = known.tensors.max(failed.tensors);
                known.steps = known.steps.max(failed.steps);
            }
            None => all.push(failed),
        }
    }
    all.sort_by_key(|failed| failed.failure.place.unwrap_or(u64::MAX));
    let told = all.into_iter().map(|FailureSummary { failure, tensors, steps }| {
        let line = gt::source::text(failure.line);
        (gt::failed_text(&failure, None, &|_| None), line, tensors, steps)
    });
    Ok(told.collect())
}

fn hot_paths<'py>(
    py: Python<'py>,
    worker: &WorkerStats,
    threshold: u32,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("total_instructions", worker.operations_total)?;
    dict.set_item("hot_instructions", worker.hot_instructions)?;
    dict.set_item("unique_sequences", worker.unique_sequences)?;
    dict.set_item("hot_sequences", worker.hot_sequences)?;
    dict.set_item("hot_threshold", threshold)?;
    let top = PyList::empty(py);
    for sequence in &worker.top_sequences {
        let entry = PyDict::new(py);
        entry.set_item("operations", &sequence.operations)?;
        entry.set_item("length", sequence.length)?;
        entry.set_item("repetitions", sequence.repetitions)?;
        entry.set_item("seconds", sequence.time.as_secs_f64())?;
        top.append(entry)?;
    }
    dict.set_item("top_sequences", top)?;
    Ok(dict)
}

fn compilation<'py>(py: Python<'py>, worker: &WorkerStats) -> PyResult<Bound<'py, PyDict>> {
    let (dict, stats) = (PyDict::new(py), &worker.compilation);
    let lookups = stats.cache_hits + stats.cache_misses;
    let rate = if lookups > 0 { stats.cache_hits as f64 / lookups as f64 } else { 0.0 };
    dict.set_item("cache_size", stats.cache_size)?;
    dict.set_item("cache_hits", stats.cache_hits)?;
    dict.set_item("cache_misses", stats.cache_misses)?;
    dict.set_item("hit_rate", rate)?;
    dict.set_item("checked", stats.checked)?;
    dict.set_item("failures", stats.failures)?;
    dict.set_item("compile_seconds", stats.compile_time.as_secs_f64())?;
    dict.set_item("seconds_saved", stats.time_saved.as_secs_f64())?;
    let compiled = PyList::empty(py);
    for compilation in &worker.compilations {
        let entry = PyDict::new(py);
        entry.set_item("operations", &compilation.operations)?;
        entry.set_item("reason", &compilation.reason)?;
        entry.set_item("seconds", compilation.time.as_secs_f64())?;
        compiled.append(entry)?;
    }
    dict.set_item("compiled", compiled)?;
    Ok(dict)
}

/// Start recording the planner's decisions for a session.
#[pyfunction]
fn begin_explaining(py: Python<'_>, session: &PySession) -> PyResult<()> {
    let session = session.session()?;
    session::waiting(py, &session, |interrupt| session.begin_explaining(interrupt))
}

/// Return the decisions recorded since `begin_explaining`, as a dict: the steps with their
/// operands, result and redistributions, the bytes of memory by worker, and the workers by slot.
#[pyfunction]
fn end_explaining(py: Python<'_>, session: &PySession) -> PyResult<Py<PyDict>> {
    let session = session.session()?;
    let explanation =
        session::waiting(py, &session, |interrupt| session.end_explaining(interrupt))?;
    let steps = PyList::empty(py);
    for step in explanation.steps {
        let dict = PyDict::new(py);
        dict.set_item("operation", step.operation)?;
        dict.set_item("line", gt::source::text(step.line))?;
        let operands: PyResult<Vec<_>> =
            step.operands.iter().map(|operand| placed(py, operand)).collect();
        dict.set_item("operands", operands?)?;
        dict.set_item("output", placed(py, &step.output)?)?;
        let redistributions = PyList::empty(py);
        for moved in step.redistributions {
            let dict = PyDict::new(py);
            dict.set_item("collective", moved.collective.name())?;
            dict.set_item("bytes", moved.bytes)?;
            dict.set_item("from", placed(py, &moved.from)?)?;
            dict.set_item("to", placed(py, &moved.to)?)?;
            dict.set_item("reason", moved.reason)?;
            redistributions.append(dict)?;
        }
        dict.set_item("moves", redistributions)?;
        dict.set_item("counted", step.data_dependent)?;
        steps.append(dict)?;
    }
    let all = PyDict::new(py);
    all.set_item("steps", steps)?;
    all.set_item(
        "memory",
        explanation.memory.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
    )?;
    let slots: Vec<String> = explanation.slots.into_iter().map(|(_, worker)| worker).collect();
    all.set_item("slots", slots)?;
    all.set_item("machines", explanation.machines)?;
    let slow = explanation.slow_links.into_iter();
    let slow: Vec<_> = slow.map(|link| (link.one, link.other, link.bytes_per_second)).collect();
    all.set_item("slow_links", slow)?;
    Ok(all.unbind())
}

fn placed<'py>(py: Python<'py>, tensor: &PlacedTensor) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("dtype", tensor.meta.dtype.name())?;
    dict.set_item("shape", convert_shape(py, &tensor.meta.shape)?)?;
    dict.set_item("placement", tensor.placement())?;
    dict.set_item("workers", &tensor.workers)?;
    Ok(dict)
}

/// Return the layouts of a tensor's copies.
#[pyfunction]
fn placements<'py>(py: Python<'py>, tensor: &PyTensor) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let copies =
        session::waiting(py, &tensor.0.session(), |interrupt| tensor.0.placement(interrupt))?;
    copies.iter().map(|copy| placed(py, copy)).collect()
}

/// Make implicit redistributions of more than `limit` bytes errors, and return the previous limit;
/// None allows all.
#[pyfunction]
#[pyo3(signature = (session, limit))]
fn set_strict(session: &PySession, limit: Option<u64>) -> PyResult<Option<u64>> {
    Ok(session.session()?.set_strict(limit))
}

/// Return the instruction set: for each operation a dict of its name, family, documentation,
/// parameters and samples.
#[pyfunction]
fn operations(py: Python<'_>) -> PyResult<Vec<Py<PyDict>>> {
    let all = ops::ALL.iter().map(|operation| {
        let dict = PyDict::new(py);
        dict.set_item("name", operation.name)?;
        dict.set_item("family", format!("{:?}", operation.family))?;
        dict.set_item("doc", operation.doc)?;
        dict.set_item("differentiable", !matches!(operation.gradient, Gradient::None))?;
        let names: Vec<_> = operation.attributes().map(|(of, _)| of.name).collect();
        dict.set_item("attributes", names)?;
        let operands = operation.parameters.iter().filter(|of| of.attribute().is_none());
        dict.set_item("operands", operands.map(|of| of.name).collect::<Vec<_>>())?;
        dict.set_item("face", operation.face)?;
        let kinds = PyDict::new(py);
        for of in operation.parameters {
            kinds.set_item(of.name, format!("{:?}", of.kind))?;
        }
        dict.set_item("kinds", kinds)?;
        dict.set_item("underived", operation.underived)?;
        dict.set_item("several", operation.further.is_some())?;
        let primitive = matches!(operation.body, gt::ir::operation::Body::Primitive);
        dict.set_item("primitive", primitive)?;
        dict.set_item("example", operation.example)?;
        let samples = (operation.samples)();
        let samples: PyResult<Vec<_>> =
            samples.iter().map(|given| sample(py, operation, given)).collect();
        dict.set_item("samples", samples?)?;
        Ok(dict.unbind())
    });
    all.collect()
}

fn sample<'py>(
    py: Python<'py>,
    operation: &Operation,
    sample: &Sample,
) -> PyResult<Bound<'py, PyDict>> {
    let operands = PyList::empty(py);
    for operand in &sample.operands {
        match operand {
            SampleOperand::Tensor { meta, low, high } => {
                let dict = PyDict::new(py);
                dict.set_item("dtype", meta.dtype.name())?;
                dict.set_item("shape", convert_shape(py, &meta.shape)?)?;
                dict.set_item("low", low)?;
                dict.set_item("high", high)?;
                operands.append(dict)?;
            }
            SampleOperand::Scalar(scalar) => operands.append(export::number(py, *scalar)?)?,
        }
    }
    let attributes = PyDict::new(py);
    for (of, value) in operation.named(&sample.attributes) {
        match of.word(value) {
            Some(word) => attributes.set_item(of.name, word)?,
            None => attributes.set_item(of.name, attribute_to_python(py, value)?)?,
        }
    }
    let dict = PyDict::new(py);
    dict.set_item("operands", operands)?;
    dict.set_item("attributes", attributes)?;
    Ok(dict)
}

fn attribute_to_python(py: Python<'_>, attribute: &Attribute) -> PyResult<Py<PyAny>> {
    Ok(match attribute {
        Attribute::None => py.None(),
        Attribute::Int(value) => value.into_pyobject(py)?.into_any().unbind(),
        Attribute::Float(value) => value.into_pyobject(py)?.into_any().unbind(),
        Attribute::Bool(value) => value.into_pyobject(py)?.to_owned().into_any().unbind(),
        Attribute::DType(value) => dtype::to_python(py, *value)?.into_any(),
        Attribute::Ints(values) => PyList::new(py, values.iter())?.into_any().unbind(),
    })
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(get_tape, module)?)?;
    module.add_function(wrap_pyfunction!(begin_explaining, module)?)?;
    module.add_function(wrap_pyfunction!(end_explaining, module)?)?;
    module.add_function(wrap_pyfunction!(placements, module)?)?;
    module.add_function(wrap_pyfunction!(set_strict, module)?)?;
    module.add_function(wrap_pyfunction!(failures, module)?)?;
    module.add_function(wrap_pyfunction!(get_cache_stats, module)?)?;
    module.add_function(wrap_pyfunction!(get_worker_stats, module)?)?;
    module.add_function(wrap_pyfunction!(operations, module)?)
}
