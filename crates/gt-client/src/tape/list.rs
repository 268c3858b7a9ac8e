//! The tape: a list of the recorded operations, for display.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, Weak};

use gt_ir::{Meta, Operand};

use super::lock;
use super::node::{NodeKind, TapeNode};
use crate::signal;

/// The tape: every recorded operation that can still be reached, in order.
static TAPE: Mutex<Vec<Weak<TapeNode>>> = Mutex::new(Vec::new());

pub(super) fn add(node: &Arc<TapeNode>) {
    let mut tape = lock(&TAPE);
    if tape.len() == tape.capacity() {
        // Removes dropped nodes before it would grow, so its length stays proportional.
        tape.retain(|node| node.strong_count() > 0);
        let room = tape.len().max(256);
        tape.reserve(room);
    }
    tape.push(Arc::downgrade(node));
}

/// One recorded operation, for display.
#[derive(Clone, Debug)]
pub struct TapeEntry {
    pub number: u64,
    pub operation: Cow<'static, str>,
    pub operands: Vec<String>,
    pub output: Meta,
    pub signal: Option<String>,
}

/// Returns the recorded operations, oldest first.
pub fn tape() -> Vec<TapeEntry> {
    let nodes: Vec<_> = lock(&TAPE).iter().filter_map(Weak::upgrade).collect();
    nodes.iter().filter_map(|node| entry(node)).collect()
}

fn entry(node: &TapeNode) -> Option<TapeEntry> {
    let text = |meta: &Meta| format!("{} {}", meta.dtype, meta.shape);
    let number = node.number;
    match &node.kind {
        NodeKind::Leaf { .. } | NodeKind::Output { .. } => None,
        NodeKind::Operation(record) => Some(TapeEntry {
            number,
            operation: Cow::Borrowed(record.operation.name),
            operands: record
                .metas
                .iter()
                .map(|operand| match operand {
                    Operand::Tensor(meta) => text(meta),
                    Operand::Scalar(scalar) => scalar.to_string(),
                })
                .collect(),
            output: record.results[0],
            signal: signal::name(record.scope.signal),
        }),
        NodeKind::Function(record) => Some(TapeEntry {
            number,
            operation: Cow::Owned(record.name.clone()),
            operands: record.inputs.iter().map(text).collect(),
            output: *record.outputs.first()?,
            signal: signal::name(record.scope.signal),
        }),
    }
}
