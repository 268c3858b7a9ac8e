//! The source line and signal under which kernels issue instructions. The threads of a backward
//! pass run no user code that could set them, and adopt those of the threads that ran the forward
//! pass.

use std::sync::{Mutex, PoisonError};

use gt::DType;
use gt::ir::SourceId;
use gt::ir::cache::{Cache, CacheLimits};
use gt::signal;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::api::TorchApi;
use super::dlpack::{self, CLUSTER};
use super::storage;
use crate::source;
use crate::user_code::LATEST;

/// Sets the line and signal for the following instructions of this thread. On a thread without user
/// code, gradients run under the gradient signal of the scope in which the last user code ran.
pub fn note(py: Python<'_>) {
    if source::note_unattributed(py) {
        signal::follow(LATEST.scope());
    } else {
        LATEST.note_scope(signal::current());
    }
}

/// The lines that used integer storages, by storage number. A backward pass uses the same index
/// tensors as the forward pass.
static INDEXED: Mutex<Cache<usize, SourceId>> =
    Mutex::new(Cache::new(CacheLimits::entries(1 << 14)));

/// Records which line uses the integer tensors among these arguments. On a thread of a backward
/// pass, the following instructions are attributed to the line that used the same tensors: they
/// compute its gradients.
pub fn note_indices(torch: &TorchApi, args: &Bound<'_, PyTuple>) -> PyResult<()> {
    for given in args.iter_borrowed() {
        if let Ok(several) = given.cast::<PyList>() {
            for one in several.iter() {
                note_index(torch, &one)?;
            }
        } else {
            note_index(torch, &given)?;
        }
    }
    Ok(())
}

fn note_index(torch: &TorchApi, given: &Bound<'_, PyAny>) -> PyResult<()> {
    if !torch.is_tensor(given)? {
        return Ok(());
    }
    let descriptor = dlpack::describe(given)?;
    let is_index = descriptor.code.dtype().is_ok_and(|of| matches!(of, DType::I64 | DType::I32));
    if is_index && descriptor.device.kind == CLUSTER {
        note_storage(descriptor.data as usize);
    }
    Ok(())
}

/// Does the same for the storage at an address, which holds integers.
pub fn note_storage(address: usize) {
    let Some(number) = storage::number(address) else { return };
    let mut indexed = INDEXED.lock().unwrap_or_else(PoisonError::into_inner);
    if !source::runs_no_user_code() {
        match (indexed.get(&number), gt::source::current()) {
            (Some(known), line) => *known = line,
            (None, line) => drop(indexed.insert(number, line, 1)),
        }
    } else if let Some(line) = indexed.get(&number) {
        source::attribute_to(gt::source::of_gradient(*line));
    }
}
