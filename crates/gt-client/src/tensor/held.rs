//! What a program's memory is used for: the values that tensors and the tape hold.

use std::sync::Arc;

use gt_ir::{Meta, Operand, SourceId};

use super::node::{NodeKind, listed, lock};
use super::{Tensor, ValueRef};
use crate::session::StreamValue;

/// A value that is held.
pub struct HeldValue {
    /// A number that no other value has while this one exists.
    pub identity: u64,
    /// The number of its session, within this process.
    pub session: u64,
    pub meta: Meta,
    /// The line that issued it.
    pub line: SourceId,
}

impl HeldValue {
    fn new(value: &Arc<StreamValue>) -> HeldValue {
        HeldValue {
            identity: Arc::as_ptr(value) as u64,
            session: value.session.number(),
            meta: value.meta,
            line: value.source,
        }
    }
}

impl Tensor {
    /// Returns the value that it holds; that of a view is not recomputed.
    pub fn held(&self) -> HeldValue {
        HeldValue::new(&self.current_value())
    }
}

impl ValueRef {
    /// Returns the value that it refers to.
    pub fn held(&self) -> HeldValue {
        HeldValue::new(self.value())
    }
}

/// Returns the values that are held for gradients, each with the operation whose gradient needs it.
pub fn for_gradients() -> Vec<(HeldValue, &'static str)> {
    let mut held = Vec::new();
    for node in listed() {
        let NodeKind::Operation(record) = &node.kind else { continue };
        let saved = lock(&record.saved);
        let Some(saved) = saved.as_ref() else { continue };
        let operands = saved.operands.iter().flatten().filter_map(Operand::tensor);
        let values = operands.chain(&saved.outputs);
        held.extend(values.map(|value| (HeldValue::new(value), record.operation.name)));
    }
    held
}
