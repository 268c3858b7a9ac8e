//! Lists the tensors that the user's program holds, by variable and line, for people who watch.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use gt::ir::status::inspection::{HeldTensor, HeldTensors};
use gt::source;
use gt::tensor::held::{HeldValue, for_gradients};
use pyo3::prelude::*;

use crate::session;
use crate::tensor::PyTensor;
use crate::torch;

/// The most tensors that are listed singly.
const LISTED: usize = 50;

/// A value with the variable that refers to it, or what it is held for.
struct HeldValueUse {
    value: HeldValue,
    variable: String,
    purpose: String,
}

/// Has sessions that are opened from now on list what the program holds of them.
pub fn register() {
    session::list_held_by(list);
}

/// Lists what the program holds of a session, and sends the list. Does not wait: it is called while
/// a message is handled, possibly by a thread that the program waits for.
fn list(session: u64) {
    let answer = move || {
        // An interpreter that ends is not asked.
        Python::try_attach(|py| {
            let held = summarize(find(py, session).unwrap_or_default());
            session::answer_held(py, session, held);
        })
    };
    // Without a thread there is no answer, and the page says that there is none.
    let _ = thread::Builder::new().name("gt-held".into()).spawn(answer);
}

/// Returns the values of a session that the program holds, those of variables first.
fn find(py: Python<'_>, session: u64) -> PyResult<Vec<HeldValueUse>> {
    let mut uses: Vec<HeldValueUse> = Vec::new();
    let mut known: HashSet<u64> = HashSet::new();
    let mut add = |held: HeldValueUse| {
        if held.value.session == session && known.insert(held.value.identity) {
            uses.push(held);
        }
    };
    let variables = py.import("gt.session.variables")?.call_method0("variables")?;
    for pair in variables.try_iter()? {
        let (variable, tensor): (String, Bound<'_, PyAny>) = pair?.extract()?;
        let value = match tensor.cast::<PyTensor>() {
            Ok(tensor) => Some(tensor.get().0.held()),
            Err(_) => torch::held(&tensor),
        };
        if let Some(value) = value {
            add(HeldValueUse { value, variable, purpose: String::new() });
        }
    }
    for (value, operation) in for_gradients() {
        let purpose = format!("for the gradient of {operation}");
        add(HeldValueUse { value, variable: String::new(), purpose });
    }
    Ok(uses)
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
