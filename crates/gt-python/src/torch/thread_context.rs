//! What the threads of a backward pass take over from the thread that called for it: they run no
//! code of a user's that could say it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use gt::DType;
use gt::ir::SourceId;
use gt::signal::{self, Scope};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use rustc_hash::FxHashMap;

use super::api::TorchApi;
use super::dlpack::{self, CLUSTER};
use super::storage;
use crate::source;

/// The signal, and that of its gradients, which a thread with code of a user's has computed under
/// last.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// Notes who issues what follows on this thread: the line, and the signal. Gradients are computed
/// under the signal for gradients of the scope that the backward pass is called in.
pub fn note(py: Python<'_>) {
    if source::note_unattributed(py) {
        let latest = LATEST.load(Ordering::Relaxed);
        let (signal, backward) = ((latest >> 32) as u32, latest as u32);
        signal::follow(Scope { signal, backward, compiled: 0 });
    } else {
        let Scope { signal, backward, .. } = signal::current();
        LATEST.store(u64::from(signal) << 32 | u64::from(backward), Ordering::Relaxed);
    }
}

/// The lines that have computed with whole numbers in storages, by the storages' numbers: backward
/// passes use the same indices.
static INDEXED: LazyLock<Mutex<FxHashMap<usize, SourceId>>> = LazyLock::new(Mutex::default);

/// How many of these there are at most; then they are noted anew.
const INDEXED_MOST: usize = 1 << 14;

/// Notes which line uses the whole numbers among these arguments. On a thread of a backward pass,
/// what uses the same ones computes gradients of what that line has computed, and is issued for it.
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

/// The same of the storage at an address, which holds whole numbers.
pub fn note_storage(address: usize) {
    let Some(number) = storage::number(address) else { return };
    let mut indexed = INDEXED.lock().unwrap_or_else(PoisonError::into_inner);
    if !source::runs_no_user_code() {
        if indexed.len() >= INDEXED_MOST {
            indexed.clear();
        }
        indexed.insert(number, gt::source::current());
    } else if let Some(&line) = indexed.get(&number) {
        source::attribute_to(gt::source::of_gradient(line));
    }
}
