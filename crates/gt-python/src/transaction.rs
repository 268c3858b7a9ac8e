//! Steps that change several tensors atomically: optimizer steps, and steps of the Python layer.

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

/// A tensor of an optimizer's state, with its value at the beginning of the step.
struct StateTensor {
    /// The address of the dict that contains it, and its key there.
    of: usize,
    key: Py<PyAny>,
    tensor: Py<PyTensor>,
    value: ValueRef,
}

thread_local! {
    /// The steps that run on this thread, with the addresses of their optimizers.
    static RUNNING: RefCell<Vec<(usize, OpenStep)>> = const { RefCell::new(Vec::new()) };
}

struct OpenStep {
    transaction: Transaction,
    entries: Vec<StateTensor>,
}

/// An open step, which ends with `commit` or `roll_back`.
#[pyclass(name = "Step", module = "gt", frozen)]
pub struct OptimizerStep(Mutex<Option<OpenStep>>);

#[pymethods]
impl OptimizerStep {
    /// End the step: apply its changes, or undo all of them if one of its instructions fails.
    fn commit(&self, py: Python<'_>, state: &Bound<'_, PyDict>) -> PyResult<()> {
        match self.take() {
            Some(begun) => begun.commit(py, state),
            None => Err(PyRuntimeError::new_err("the step is over")),
        }
    }

    /// End the step: restore all tensors and state as they were when it began.
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

    /// Ends the step: applies its changes, or undoes all of them if one of its instructions fails.
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
                // The order is mostly unchanged.
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

    /// Ends the step: restores all tensors and state as they were when it began.
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

/// Begin a step, and return it.
///
/// It may change the tensors in "params" of each group and in the dicts of the state, and may
/// replace the latter.
#[pyfunction]
fn begin_step(groups: &Bound<'_, PyList>, state: &Bound<'_, PyDict>) -> PyResult<OptimizerStep> {
    Ok(OptimizerStep(Mutex::new(Some(OpenStep::new(groups, state)?))))
}

/// Call `step(optimizer, args, kwargs)` and return its result. The call is an atomic step of the
/// optimizer's parameters and state, unless it is inside one already.
///
/// If the call raises, its changes are rolled back.
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
    let (_, begun) = running.expect("inner steps have ended");
    // The step may have replaced the state.
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

/// Add the tensors in a state dict to those that a rollback of the running step restores, with
/// their current values.
#[pyfunction]
fn begin_with(own: &Bound<'_, PyDict>) {
    RUNNING.with_borrow_mut(|running| {
        if let Some((_, begun)) = running.last_mut() {
            note(own, &mut begun.entries);
        }
    });
}

/// Adds the tensors of a dict to `entries`.
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

/// Returns whether two dict keys are the same. They are strings, and mostly the same object.
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
