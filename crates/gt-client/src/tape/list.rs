//! The tape: a list of the recorded operations, for display.

use gt_ir::{Meta, Operand};
use std::borrow::Cow;

use crate::context::names;
use crate::tensor::node::{NodeKind, TapeNode, listed};

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
    listed().iter().filter_map(|node| entry(node)).collect()
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
            signal: names::name(record.scope.signal),
        }),
        NodeKind::Function(record) => Some(TapeEntry {
            number,
            operation: Cow::Owned(record.name.clone()),
            operands: record.inputs.iter().map(text).collect(),
            output: *record.outputs.first()?,
            signal: names::name(record.scope.signal),
        }),
    }
}
