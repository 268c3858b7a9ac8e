//! Instructions, lines and values as text.

use gt_ir::{Instruction, Meta, Operand, SourceId, TensorData, TensorId};

use super::compare::Received;
use crate::outcome::Outcome;
use crate::reading::Recording;

/// The most elements of a value that are shown.
const MOST: usize = 8;

/// Returns an instruction by its operation, operands and attributes: `add of float32 (2, 3) and 1.5`.
/// `meta` returns shape and dtype of a tensor.
pub fn instruction(instruction: &Instruction, meta: impl Fn(TensorId) -> Option<Meta>) -> String {
    let operands = instruction.operands.iter().map(|operand| match operand {
        Operand::Tensor(id) => meta(*id).map(Operand::Tensor),
        Operand::Scalar(scalar) => Some(Operand::Scalar(*scalar)),
    });
    let mut text = match operands.collect::<Option<Vec<_>>>() {
        Some(metas) => instruction.describe(&metas),
        None => instruction.title().into_owned(),
    };
    let attributes = instruction.operation.named(&instruction.attributes);
    let shown: Vec<String> = attributes
        .filter(|(_, attribute)| **attribute != gt_ir::Attribute::None)
        .map(|(of, attribute)| format!("{}={}", of.name, of.shown(attribute)))
        .collect();
    if !shown.is_empty() {
        text.push_str(&format!(" ({})", shown.join(", ")));
    }
    text
}

/// Returns a line of the program, with the function that is called there.
pub fn line(recording: &Recording, source: SourceId) -> Option<String> {
    let line = recording.line(source)?;
    let gradient = if source.0 & 1 == 1 { ", in its gradient" } else { "" };
    Some(match line.called.as_str() {
        "" => format!("{}{gradient}", line.text),
        called => format!("{}, in {called}{gradient}", line.text),
    })
}

fn elements(data: &TensorData, count: usize) -> String {
    let shown = (0..count.min(MOST)).map(|index| match data.dtype.is_complex() {
        true => {
            let (real, imaginary) = data.complex(index);
            format!("{real}{imaginary:+}j")
        }
        false => data.element(index).to_string(),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if count > MOST {
        text.push_str(", ...");
    }
    text
}

/// Returns what was received, as text.
pub fn received(received: &Received) -> String {
    match received {
        Received::Value(data) => {
            format!("{} {}: {}", data.dtype, data.shape, elements(data, data.shape.numel()))
        }
        Received::Failed(failure) => format!("failed: {}: {}", failure.operation, failure.reason),
    }
}

/// Returns what is recorded of a value, as text.
pub fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Value(recorded) => {
            let meta = recorded.meta;
            let first = recorded.first_elements();
            let first = first.map(|data| elements(&data, data.shape.numel())).unwrap_or_default();
            format!("{} {}: {first}", meta.dtype, meta.shape)
        }
        Outcome::Failed { operation, reason, .. } => format!("failed: {operation}: {reason}"),
        Outcome::Unrecorded => "not recorded".into(),
    }
}

/// Returns how two values differ most, and at which index; `None` if their shapes differ.
pub fn largest_difference(one: &TensorData, other: &TensorData) -> Option<(usize, f64)> {
    if one.dtype != other.dtype || one.shape != other.shape {
        return None;
    }
    let distance = |index: usize| {
        let (a, b) = (one.complex(index), other.complex(index));
        let distance = (a.0 - b.0).abs().max((a.1 - b.1).abs());
        if distance.is_nan() { f64::INFINITY } else { distance }
    };
    let size = one.dtype.size();
    let differ = |index: &usize| {
        let range = index * size..(index + 1) * size;
        one.bytes[range.clone()] != other.bytes[range]
    };
    let found = (0..one.shape.numel()).filter(differ).map(|index| (index, distance(index)));
    found.max_by(|one, other| one.1.total_cmp(&other.1))
}
