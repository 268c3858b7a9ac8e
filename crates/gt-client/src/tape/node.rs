//! Nodes of the tape: leaves, operations, functions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use gt_ir::instruction::Results;
use gt_ir::operation::{OUTPUT, ints};
use gt_ir::ops;
use gt_ir::{Attributes, Meta, Operand, Operation, SourceId};
use smallvec::SmallVec;

use super::function::FunctionRecord;
use super::hooks::GradientHooks;
use super::{list, lock};
use crate::session::StreamValue;
use crate::signal::{self, Scope};
use crate::tensor::Tensor;
use crate::vmap::{LevelNumbers, levels_of};

/// The operation that made a tensor, or, for a leaf, where its gradient is accumulated.
pub(crate) struct TapeNode {
    /// Later nodes have larger numbers, so their order is a topological order.
    pub(super) number: u64,
    pub(super) kind: NodeKind,
    /// The hooks on the gradient; rarely any.
    pub(super) hooks: OnceLock<Box<GradientHooks>>,
}

pub(super) enum NodeKind {
    Leaf {
        grad: Mutex<Option<Tensor>>,
    },
    Operation(Box<OperationRecord>),
    Function(Box<FunctionRecord>),
    /// One of the results of a function, or of an operation with several.
    Output {
        of: Arc<TapeNode>,
        index: usize,
    },
}

pub(super) struct OperationRecord {
    pub(super) operation: &'static Operation,
    pub(super) attributes: Attributes,
    pub(super) scope: Scope,
    /// The line that issued it.
    pub(super) source: SourceId,
    /// Shape and dtype of each result.
    pub(super) results: Results,
    pub(super) metas: SmallVec<[Operand<Meta>; 3]>,
    /// The nodes of the operands, where they have any.
    pub(super) parents: SmallVec<[Option<Arc<TapeNode>>; 3]>,
    /// The levels at which each operand is mapped over, if a result is: those of its gradient.
    pub(super) levels: Option<Box<[LevelNumbers]>>,
    /// Dropped after a backward pass that does not retain the graph.
    pub(super) saved: Mutex<Option<SavedValues>>,
}

pub(super) struct SavedValues {
    pub(super) operands: SmallVec<[Option<Operand<Arc<StreamValue>>>; 3]>,
    /// All results, or none.
    pub(super) outputs: SmallVec<[Arc<StreamValue>; 1]>,
}

impl SavedValues {
    /// Returns whether it has saved values: a node without any may be traversed repeatedly.
    pub(super) fn holds_any(&self) -> bool {
        !self.outputs.is_empty() || self.operands.iter().any(Option::is_some)
    }
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl TapeNode {
    pub(super) fn new(kind: NodeKind) -> Arc<TapeNode> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Arc::new(TapeNode { number, kind, hooks: OnceLock::new() })
    }

    /// Returns the node of a leaf that requires gradients.
    pub fn leaf() -> Arc<TapeNode> {
        TapeNode::new(NodeKind::Leaf { grad: Mutex::new(None) })
    }

    /// Records an operation.
    pub fn record(
        operation: &'static Operation,
        attributes: Attributes,
        operands: &[Operand<(Arc<StreamValue>, Option<Arc<TapeNode>>)>],
        outputs: &[Arc<StreamValue>],
    ) -> Arc<TapeNode> {
        let save = |index: usize| operation.saves & 1 << index != 0;
        let saved = operands.iter().enumerate().map(|(index, operand)| {
            save(index).then(|| operand.map(|(value, _)| Arc::clone(value)))
        });
        let saved = SavedValues {
            operands: saved.collect(),
            outputs: if operation.saves & OUTPUT != 0 {
                SmallVec::from(outputs)
            } else {
                SmallVec::new()
            },
        };
        let record = OperationRecord {
            operation,
            attributes,
            scope: signal::current(),
            source: outputs.first().map_or_else(SourceId::default, |output| output.source),
            results: outputs.iter().map(|output| output.meta).collect(),
            metas: operands.iter().map(|operand| operand.map(|(value, _)| value.meta)).collect(),
            parents: operands
                .iter()
                .map(|operand| operand.tensor().and_then(|(_, node)| node.clone()))
                .collect(),
            levels: levels_of(
                operands.iter().map(|operand| operand.tensor().map(|(value, _)| value)),
                outputs,
            ),
            saved: Mutex::new(Some(saved)),
        };
        let node = TapeNode::new(NodeKind::Operation(Box::new(record)));
        list::add(&node);
        node
    }

    /// Returns the node of one of several results of an operation.
    pub fn output(of: &Arc<TapeNode>, index: usize) -> Arc<TapeNode> {
        TapeNode::new(NodeKind::Output { of: Arc::clone(of), index })
    }

    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, NodeKind::Leaf { .. })
    }

    /// Returns the nodes to which its gradient propagates.
    pub(super) fn parents(&self) -> impl Iterator<Item = &Arc<TapeNode>> {
        let (several, one) = match &self.kind {
            NodeKind::Leaf { .. } => (&[][..], None),
            NodeKind::Operation(record) => (&record.parents[..], None),
            NodeKind::Function(record) => (&record.parents[..], None),
            NodeKind::Output { of, .. } => (&[][..], Some(of)),
        };
        several.iter().flatten().chain(one)
    }

    /// Returns whether it transposes the last two axes, and no others.
    pub(super) fn is_transpose(&self) -> bool {
        let NodeKind::Operation(record) = &self.kind else { return false };
        if !std::ptr::eq(record.operation, &ops::shape::PERMUTE) {
            return false;
        }
        let order = ints(&record.attributes, 0);
        let rank = order.len() as i64;
        let turned = |(to, &from): (usize, &i64)| match rank - to as i64 {
            1 => from == rank - 2,
            2 => from == rank - 1,
            _ => from == to as i64,
        };
        order.iter().enumerate().all(turned)
    }

    /// Returns a leaf's gradient, or a retained one.
    pub fn grad(&self) -> Option<Tensor> {
        match &self.kind {
            NodeKind::Leaf { grad } => lock(grad).clone(),
            _ => self.hooks.get()?.retained(),
        }
    }

    pub fn set_grad(&self, value: Option<Tensor>) {
        match &self.kind {
            NodeKind::Leaf { grad } => {
                // The old one is dropped after the lock is released, and its graph with it.
                let old = std::mem::replace(&mut *lock(grad), value);
                drop(old);
            }
            _ => {
                if let Some(gradient_hooks) = self.hooks.get() {
                    gradient_hooks.set_retained(value);
                }
            }
        }
    }

    fn take_parents(&mut self, into: &mut Vec<Arc<TapeNode>>) {
        match &mut self.kind {
            NodeKind::Leaf { .. } => {}
            NodeKind::Operation(record) => into.extend(record.parents.drain(..).flatten()),
            NodeKind::Function(record) => into.extend(record.parents.drain(..).flatten()),
            NodeKind::Output { of, .. } => into.push(std::mem::replace(of, Arc::clone(&NOWHERE))),
        }
    }
}

/// A placeholder for the function that an output has released.
static NOWHERE: LazyLock<Arc<TapeNode>> = LazyLock::new(TapeNode::leaf);

/// Drops a long chain of nodes in a loop: recursion would overflow the stack.
impl Drop for TapeNode {
    fn drop(&mut self) {
        let mut pending = Vec::new();
        self.take_parents(&mut pending);
        while let Some(node) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                node.take_parents(&mut pending);
            }
        }
    }
}
