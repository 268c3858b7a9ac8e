//! Steps of PyTorch's optimizers, whose changes of storages commit or roll back as a whole.

use std::sync::{Mutex, PoisonError};

use gt::ir::Meta;
use gt::{Session, Tensor, ValueRef, ValueStep};
use pyo3::prelude::*;
use rustc_hash::FxHashMap;

use super::{storage, thread_context};
use crate::error::IntoPython;
use crate::session;

/// An open step, which ends with `commit` or `roll_back`.
///
/// Args:
///     addresses: the storage addresses of the tensors that it may change.
#[pyclass(module = "gt", frozen)]
pub struct StorageStep(Mutex<Option<OpenStorageStep>>);

struct OpenStorageStep {
    /// The elements of each storage when the step began, by storage number; `None` if it had none,
    /// or is handled.
    before: FxHashMap<usize, Option<ValueRef>>,
    /// The step in the session of the first storage with elements.
    step: Option<(ValueStep, Session)>,
}

#[pymethods]
impl StorageStep {
    #[new]
    fn new(addresses: Vec<usize>) -> StorageStep {
        let numbers = addresses.into_iter().filter_map(storage::number);
        let before: FxHashMap<usize, Option<ValueRef>> =
            numbers.map(|number| (number, elements(number))).collect();
        let step = before.values().flatten().next().map(|value| {
            let session = value.session().clone();
            (ValueStep::begin(&session), session)
        });
        StorageStep(Mutex::new(Some(OpenStorageStep { before, step })))
    }

    /// End the step and apply its changes, or undo all of them if one of its instructions fails.
    ///
    /// Args:
    ///     changed: the storage addresses of the changed tensors. Each comes with the number that
    ///         filled the tensor initially if it was created during the step.
    fn commit(&self, py: Python<'_>, changed: Vec<(usize, f64)>) -> PyResult<()> {
        let Some(OpenStorageStep { mut before, step: Some((mut step, session)) }) = self.take()
        else {
            return Ok(());
        };
        thread_context::note(py);
        for (address, number) in changed {
            let Some(at) = storage::number(address) else { continue };
            let Some(new) = elements(at).filter(|new| new.session().is(&session)) else { continue };
            let old = match before.remove(&at) {
                // It had no elements when the step began, or was handled already.
                Some(None) => continue,
                Some(Some(old)) if old.identity() == new.identity() => continue,
                Some(Some(old)) if !old.session().is(&session) => continue,
                old => old.flatten(),
            };
            before.insert(at, None);
            session::ready(py, &new.tensor())?;
            let identity = new.identity();
            let kept = step.changes(new, old, number).py()?;
            if kept.identity() != identity {
                storage::set(at, kept);
            }
        }
        step.end().py()
    }

    /// End the step and restore the tensors at these addresses as they were when it began; refill
    /// those that were created during the step with their initial number.
    fn roll_back(&self, py: Python<'_>, changed: Vec<(usize, f64)>) -> PyResult<()> {
        let Some(OpenStorageStep { before, .. }) = self.take() else { return Ok(()) };
        thread_context::note(py);
        for (address, number) in changed {
            let Some(at) = storage::number(address) else { continue };
            match (before.get(&at), elements(at)) {
                (Some(Some(old)), _) => storage::set(at, old.clone()),
                (None, Some(new)) => {
                    let &Meta { shape, dtype } = new.meta();
                    let start = Tensor::full(new.session(), shape, number, dtype).py()?;
                    storage::set(at, start.value_ref());
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl StorageStep {
    fn take(&self) -> Option<OpenStorageStep> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

fn elements(number: usize) -> Option<ValueRef> {
    let content = storage::inspect(number, |stored| match &stored.content {
        storage::StorageContent::Elements(value) => Some(value.clone()),
        _ => None,
    });
    content.flatten()
}
