//! Steps of optimizers and of users: what they change takes place together, or not at all.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

use gt::{Transaction, ValueRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::IntoPython;
use crate::source;
use crate::tensor::PyTensor;

/// A tensor that is kept for a parameter, when the step began.
struct StateTensor {
    /// The dict that it was in, by its address, and its key there.
    of: usize,
    key: Py<PyAny>,
    tensor: Py<PyTensor>,
    value: ValueRef,
}

thread_local! {
    /// The optimizers whose steps run on this thread, by their addresses.
    static RUNNING: RefCell<Vec<(usize, OpenStep)>> = const { RefCell::new(Vec::new()) };
}

struct OpenStep {
    transaction: Transaction,
    entries: Vec<StateTensor>,
}

/// A step that has begun.
#[pyclass(name = "Step", module = "gt", frozen)]
pub struct OptimizerStep(Mutex<Option<OpenStep>>);

#[pymethods]
impl OptimizerStep {
    /// Ends the step: what it has changed takes place, or is undone where a part of it has failed.
    fn commit(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        match self.take() {
            Some(begun) => begun.commit(py, state),
            None => Err(PyRuntimeError::new_err("the step is over")),
        }
    }

    /// Ends the step: everything is as it was when it began.
    fn roll_back(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        self.take().map_or(Ok(()), |begun| begun.roll_back(py, state))
    }
}

impl OptimizerStep {
    fn take(&self) -> Option<OpenStep> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl OpenStep {
    fn new(groups: &Bound<'_, PyList>, state: &Bound<'_, PyDict>) -> PyResult<OpenStep> {
        let mut tensors: Vec<Bound<'_, PyTensor>> = Vec::new();
        for group in groups {
            let params = group.get_item(intern!(groups.py(), "params"))?;
            for tensor in params.try_iter()? {
                tensors.push(tensor?.cast_into()?);
            }
        }
        let mut entries = Vec::new();
        for own in state.values() {
            note(&own, &mut entries);
        }
        let kept = entries.iter().map(|entry| &entry.tensor.get().0);
        let tensors = tensors.iter().map(|tensor| &tensor.get().0).chain(kept);
        let transaction = Transaction::begin(tensors);
        Ok(OpenStep { transaction, entries })
    }

    /// Ends the step: what it has changed takes place, or is undone where a part of it has failed.
    fn commit(self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let OpenStep { transaction, entries } = self;
        source::note(py);
        let mut made: Vec<(Bound<'_, PyTensor>, Option<ValueRef>)> = Vec::new();
        let mut next = 0;
        for own in state.values() {
            let Ok(own) = own.cast_into::<PyDict>() else { continue };
            for (key, value) in own.iter() {
                let Ok(value) = value.cast_into::<PyTensor>() else { continue };
                let is_it = |entry: &StateTensor| {
                    entry.of == own.as_ptr() as usize && is_key(&entry.key, &key)
                };
                // They are mostly in the same order.
                let found = match entries.get(next).filter(|entry| is_it(entry)) {
                    Some(entry) => Some(entry),
                    None => entries.iter().rev().find(|entry| is_it(entry)),
                };
                next += 1;
                match found {
                    Some(entry) if entry.tensor.is(&value) => {}
                    found => made.push((value, found.map(|entry| entry.value.clone()))),
                }
            }
        }
        let made = made.iter().map(|(tensor, old)| (&tensor.get().0, old.clone()));
        transaction.commit(made).py()
    }

    /// Ends the step: everything is as it was when it began.
    fn roll_back(self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        let OpenStep { transaction, entries } = self;
        for own in state.values() {
            let Ok(own) = own.cast_into::<PyDict>() else { continue };
            let of = own.as_ptr() as usize;
            for key in own.keys() {
                let is_tensor =
                    own.get_item(&key)?.is_some_and(|value| value.cast::<PyTensor>().is_ok());
                let is_it = |entry: &&StateTensor| entry.of == of && is_key(&entry.key, &key);
                match entries.iter().find(is_it) {
                    Some(entry) => own.set_item(&key, &entry.tensor)?,
                    None if is_tensor => own.del_item(&key)?,
                    None => {}
                }
            }
        }
        source::note(py);
        transaction.roll_back().py()
    }
}

/// Begins a step that may change tensors: those that are "params" of a group, and those that the
/// state has in its dicts, where they may also be replaced.
#[pyfunction]
fn begin_step(groups: &Bound<'_, PyList>, state: &Bound<'_, PyDict>) -> PyResult<OptimizerStep> {
    Ok(OptimizerStep(Mutex::new(Some(OpenStep::new(groups, state)?))))
}

/// Runs `step(optimizer, args, kwargs)` as a step of what the optimizer changes, unless it is in
/// one already.
#[pyfunction]
fn run_step(
    step: &Bound<'_, PyAny>,
    optimizer: &Bound<'_, PyAny>,
    args: &Bound<'_, PyAny>,
    kwargs: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let py = optimizer.py();
    let key = optimizer.as_ptr() as usize;
    let is_inner = RUNNING.with_borrow(|running| running.iter().any(|(other, _)| *other == key));
    if is_inner {
        return Ok(step.call1((optimizer, args, kwargs))?.unbind());
    }
    let groups = optimizer.getattr(intern!(py, "param_groups"))?;
    let state = optimizer.getattr(intern!(py, "state"))?;
    let (groups, begun_state) = (groups.cast_into::<PyList>()?, state.cast_into::<PyDict>()?);
    let begun = OpenStep::new(&groups, &begun_state)?;
    RUNNING.with_borrow_mut(|running| running.push((key, begun)));
    let result = step.call1((optimizer, args, kwargs));
    let running = RUNNING.with_borrow_mut(Vec::pop);
    let (_, begun) = running.expect("those that came later have ended");
    // The step may have given the optimizer another state.
    let state = optimizer.getattr(intern!(py, "state"))?.cast_into::<PyDict>()?;
    match result {
        Ok(result) => {
            begun.commit(py, &state)?;
            Ok(result.unbind())
        }
        Err(error) => {
            begun.roll_back(py, &state)?;
            Err(error)
        }
    }
}

/// Has what an optimizer keeps in a dict by now be what its present step goes back to.
#[pyfunction]
fn begin_with(own: &Bound<'_, PyDict>) {
    RUNNING.with_borrow_mut(|running| {
        if let Some((_, begun)) = running.last_mut() {
            note(own, &mut begun.entries);
        }
    });
}

/// Notes the tensors in a dict.
fn note(own: &Bound<'_, PyAny>, entries: &mut Vec<StateTensor>) {
    let Ok(own) = own.cast::<PyDict>() else { return };
    for (key, value) in own.iter() {
        if let Ok(tensor) = value.cast_into::<PyTensor>() {
            let of = own.as_ptr() as usize;
            let value = tensor.get().0.value_ref();
            entries.push(StateTensor { of, key: key.unbind(), tensor: tensor.unbind(), value });
        }
    }
}

/// Whether two keys of a dict are the same: names, mostly one object.
fn is_key(one: &Py<PyAny>, other: &Bound<'_, PyAny>) -> bool {
    if one.is(other) {
        return true;
    }
    let text = |key: &Bound<'_, PyAny>| {
        key.cast::<PyString>().ok().map(|key| key.to_string_lossy().into_owned())
    };
    matches!((text(one.bind(other.py())), text(other)), (Some(one), Some(other)) if one == other)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(begin_step, module)?)?;
    module.add_function(wrap_pyfunction!(run_step, module)?)?;
    module.add_function(wrap_pyfunction!(begin_with, module)?)?;
    module.add_class::<OptimizerStep>()
}
