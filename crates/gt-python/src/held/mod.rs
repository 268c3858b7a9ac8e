//! Lists the tensors that the user's program holds, by variable and line, for people who watch.
//!
//! [`search`]: what variables refer to; [`roots`]: the variables.

mod roots;
mod search;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use gt::ir::status::inspection::{HeldTensor, HeldTensors};
use gt::source;
use gt::tensor::held::{HeldValue, for_gradients};
use pyo3::prelude::*;

use self::search::{VariableSearch, Visited};
use crate::session;
use crate::session::exit::PythonCaller;
use crate::tensor::PyTensor;
use crate::torch::{self, TorchTypes};

/// The most tensors that are listed singly.
const LISTED: usize = 50;

/// A value with the variable that refers to it, or what it is held for.
struct HeldValueUse {
    value: HeldValue,
    variable: String,
    purpose: String,
}

/// Whether a listing is in progress: one at a time is enough.
static IS_LISTING: AtomicBool = AtomicBool::new(false);

/// Has sessions that are opened from now on list what the program holds of them.
pub fn register() {
    session::list_held_by(list);
}

/// Lists what the program holds of a session, and sends the list. Does not wait: it is called while
/// a message is handled, possibly by a thread that the program waits for.
fn list(session: u64) {
    // Process exit waits for the listing; none begins after that.
    let Some(caller) = PythonCaller::enter() else { return };
    if IS_LISTING.swap(true, Ordering::SeqCst) {
        return;
    }
    let answer = move || {
        Python::try_attach(|py| {
            let held = summarize(find(py, session));
            session::answer_held(py, session, held);
        });
        IS_LISTING.store(false, Ordering::SeqCst);
        drop(caller);
    };
    if thread::Builder::new().name("gt-held".into()).spawn(answer).is_err() {
        // The server asks again after a while.
        IS_LISTING.store(false, Ordering::SeqCst);
    }
}

/// Returns the values of a session that the program holds, those of variables first.
fn find(py: Python<'_>, session: u64) -> Vec<HeldValueUse> {
    let mut uses: Vec<HeldValueUse> = Vec::new();
    let mut known: HashSet<u64> = HashSet::new();
    let torch = TorchTypes::loaded(py);
    VariableSearch::run(py, |object, name| {
        let (value, gradient) = match object.cast::<PyTensor>() {
            Ok(tensor) => {
                let tensor = tensor.get();
                let gradient = tensor.0.grad().and_then(|of| Py::new(py, PyTensor(of)).ok());
                (Some(tensor.0.held()), gradient.map(|of| of.into_bound(py).into_any()))
            }
            Err(_) => match torch.as_ref().filter(|torch| torch.is_tensor(object)) {
                Some(_) => (torch::held(object), torch::gradient(object)),
                None => return Visited::Other,
            },
        };
        if let Some(value) = value
            && value.session == session
            && known.insert(value.identity)
        {
            uses.push(HeldValueUse { value, variable: name(), purpose: String::new() });
        }
        Visited::Tensor(gradient)
    });
    for (value, operation) in for_gradients() {
        if value.session == session && known.insert(value.identity) {
            let purpose = format!("for the gradient of {operation}");
            uses.push(HeldValueUse { value, variable: String::new(), purpose });
        }
    }
    uses
}

/// Returns the largest ones, and the sum of the others.
fn summarize(mut uses: Vec<HeldValueUse>) -> HeldTensors {
    uses.sort_by_key(|held| std::cmp::Reverse(held.value.meta.bytes()));
    let rest = uses.split_off(uses.len().min(LISTED));
    let tensor = |HeldValueUse { value, variable, purpose }: HeldValueUse| HeldTensor {
        variable,
        line: source::short(value.line).unwrap_or_default(),
        meta: value.meta,
        purpose,
    };
    HeldTensors {
        // The server fills it in.
        at: Duration::ZERO,
        others: rest.len() as u64,
        other_bytes: rest.iter().map(|held| held.value.meta.bytes() as u64).sum(),
        largest: uses.into_iter().map(tensor).collect(),
    }
}
