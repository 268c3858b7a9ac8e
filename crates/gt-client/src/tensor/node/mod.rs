//! Nodes of the tape: leaves, operations, functions.
//!
//! - [`function`]: functions with user-defined gradients; [`hooks`]: hooks on gradients.

pub(crate) mod function;
pub(crate) mod hooks;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, Weak};

use gt_ir::instruction::Results;
use gt_ir::operation::{OUTPUT, ints};
use gt_ir::ops;
use gt_ir::{Attributes, Meta, Operand, Operation, SourceId};
use smallvec::SmallVec;

use self::function::FunctionRecord;
use self::hooks::GradientHooks;
use super::Tensor;
use crate::batching::{LevelNumbers, levels_of};
use crate::context::Context;
use crate::context::scopes::Scope;
use crate::session::StreamValue;

/// The operation that made a tensor, or, for a leaf, where its gradient is accumulated.
pub(crate) struct TapeNode {
    /// Later nodes have larger numbers, so their order is a topological order.
    pub(crate) number: u64,
    pub(crate) kind: NodeKind,
    /// The hooks on the gradient; rarely any.
    pub(crate) hooks: OnceLock<Box<GradientHooks>>,
}

pub(crate) enum NodeKind {
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

pub(crate) struct OperationRecord {
    pub(crate) operation: &'static Operation,
    pub(crate) attributes: Attributes,
    pub(crate) scope: Scope,
    /// The line that issued it.
    pub(crate) source: SourceId,
    /// Shape and dtype of each result.
    pub(crate) results: Results,
    pub(crate) metas: SmallVec<[Operand<Meta>; 3]>,
    /// The nodes of the operands, where they have any.
    pub(crate) parents: SmallVec<[Option<Arc<TapeNode>>; 3]>,
    /// The levels at which each operand is mapped over, if a result is: those of its gradient.
    pub(crate) levels: Option<Box<[LevelNumbers]>>,
    /// Dropped after a backward pass that does not retain the graph.
    pub(crate) saved: Mutex<Option<SavedValues>>,
}

pub(crate) struct SavedValues {
    pub(crate) operands: SmallVec<[Option<Operand<Arc<StreamValue>>>; 3]>,
    /// All results, or none.
    pub(crate) outputs: SmallVec<[Arc<StreamValue>; 1]>,
}

impl SavedValues {
    /// Returns whether it has saved values: a node without any may be traversed repeatedly.
    pub(crate) fn holds_any(&self) -> bool {
        !self.outputs.is_empty() || self.operands.iter().any(Option::is_some)
    }
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Every recorded operation that can still be reached, in order.
static TAPE: Mutex<Vec<Weak<TapeNode>>> = Mutex::new(Vec::new());

fn list(node: &Arc<TapeNode>) {
    let mut tape = lock(&TAPE);
    if tape.len() == tape.capacity() {
        // Removes dropped nodes before it would grow, so its length stays proportional.
        tape.retain(|node| node.strong_count() > 0);
        let room = tape.len().max(256);
        tape.reserve(room);
    }
    tape.push(Arc::downgrade(node));
}

/// Returns every recorded operation that can still be reached, in order.
pub(crate) fn listed() -> Vec<Arc<TapeNode>> {
    lock(&TAPE).iter().filter_map(Weak::upgrade).collect()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl TapeNode {
    pub(crate) fn new(kind: NodeKind) -> Arc<TapeNode> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Arc::new(TapeNode { number, kind, hooks: OnceLock::new() })
    }

    /// Returns the node of a leaf that requires gradients.
    pub fn leaf() -> Arc<TapeNode> {
        TapeNode::new(NodeKind::Leaf { grad: Mutex::new(None) })
    }

    /// Records an operation.
    pub fn record(
        context: &Context,
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
            scope: context.scope(),
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
        list(&node);
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
    pub(crate) fn parents(&self) -> impl Iterator<Item = &Arc<TapeNode>> {
        let (several, one) = match &self.kind {
            NodeKind::Leaf { .. } => (&[][..], None),
            NodeKind::Operation(record) => (&record.parents[..], None),
            NodeKind::Function(record) => (&record.parents[..], None),
            NodeKind::Output { of, .. } => (&[][..], Some(of)),
        };
        several.iter().flatten().chain(one)
    }

    /// Returns whether it transposes the last two axes, and no others.
    pub(crate) fn is_transpose(&self) -> bool {
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
