//! Autograd: a tape of what was computed, and the gradients that follow from it.
//!
//! Each recorded operation is a [`Node`] that holds what its gradient rule needs. Nodes hang on
//! the tensors they made, so a graph lives as long as something can still reach it; the tape
//! itself only lists them. Gradients are further instructions, issued in reverse order.

use std::cell::Cell;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use gt_ir::operation::{Gradient, OUTPUT, Saved, ints};
use gt_ir::ops;
use gt_ir::{Attributes, Graph, Meta, Operand, Operation, Var};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::{ClientError, Result};
use crate::session::{Session, Value};
use crate::signal::{self, Scope};
use crate::tensor::Tensor;

thread_local! {
    static ENABLED: Cell<bool> = const { Cell::new(true) };
}

/// Whether operations are recorded on this thread.
pub fn grad_enabled() -> bool {
    ENABLED.get()
}

/// Turns recording on or off on this thread, and returns how it was.
pub fn set_grad_enabled(enabled: bool) -> bool {
    ENABLED.replace(enabled)
}

/// Runs `body` without recording.
pub fn no_grad<T>(body: impl FnOnce() -> T) -> T {
    with_grad(false, body)
}

fn with_grad<T>(enabled: bool, body: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            ENABLED.set(self.0);
        }
    }
    let _restore = Restore(ENABLED.replace(enabled));
    body()
}

/// What made a tensor, or, for a leaf, where its gradient is kept.
pub(crate) struct Node {
    /// Later nodes have larger numbers: their order is an order of the graph.
    number: u64,
    kind: NodeKind,
}

enum NodeKind {
    Leaf { grad: Mutex<Option<Tensor>> },
    Operation(Box<Record>),
}

struct Record {
    operation: &'static Operation,
    attributes: Attributes,
    scope: Scope,
    output_meta: Meta,
    metas: SmallVec<[Operand<Meta>; 3]>,
    /// The nodes of the operands, where they have any.
    parents: SmallVec<[Option<Arc<Node>>; 3]>,
    /// Given up after a backward pass that does not retain the graph.
    saved: Mutex<Option<SavedValues>>,
}

struct SavedValues {
    operands: SmallVec<[Option<Operand<Arc<Value>>>; 3]>,
    output: Option<Arc<Value>>,
}

static NUMBER: AtomicU64 = AtomicU64::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Node {
    /// The node of a tensor that the user wants gradients for.
    pub fn leaf() -> Arc<Node> {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Arc::new(Node { number, kind: NodeKind::Leaf { grad: Mutex::new(None) } })
    }

    /// Records an operation.
    pub fn record(
        operation: &'static Operation,
        attributes: Attributes,
        operands: &[Operand<(Arc<Value>, Option<Arc<Node>>)>],
        output: &Arc<Value>,
    ) -> Arc<Node> {
        let save = |index: usize| operation.saves & 1 << index != 0;
        let saved = operands.iter().enumerate().map(|(index, operand)| {
            save(index).then(|| operand.map(|(value, _)| Arc::clone(value)))
        });
        let saved = SavedValues {
            operands: saved.collect(),
            output: (operation.saves & OUTPUT != 0).then(|| Arc::clone(output)),
        };
        let record = Record {
            operation,
            attributes,
            scope: signal::current(),
            output_meta: output.meta,
            metas: operands.iter().map(|operand| operand.map(|(value, _)| value.meta)).collect(),
            parents: operands
                .iter()
                .map(|operand| operand.tensor().and_then(|(_, node)| node.clone()))
                .collect(),
            saved: Mutex::new(Some(saved)),
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let node = Arc::new(Node { number, kind: NodeKind::Operation(Box::new(record)) });
        list(&node);
        node
    }

    pub fn is_leaf(&self) -> bool {
        matches!(self.kind, NodeKind::Leaf { .. })
    }

    /// Whether it exchanges the last two axes, and no others.
    fn is_transpose(&self) -> bool {
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

    /// A leaf's gradient.
    pub fn grad(&self) -> Option<Tensor> {
        match &self.kind {
            NodeKind::Leaf { grad } => lock(grad).clone(),
            NodeKind::Operation(_) => None,
        }
    }

    pub fn set_grad(&self, value: Option<Tensor>) {
        if let NodeKind::Leaf { grad } = &self.kind {
            *lock(grad) = value;
        }
    }
}

/// A long chain of nodes is taken apart in a loop: recursion would overflow the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let NodeKind::Operation(record) = &mut self.kind else { return };
        let mut pending: Vec<Arc<Node>> = record.parents.drain(..).flatten().collect();
        while let Some(node) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(node)
                && let NodeKind::Operation(record) = &mut node.kind
            {
                pending.extend(record.parents.drain(..).flatten());
            }
        }
    }
}

/// The tape: every recorded operation that can still be reached, in order.
static TAPE: Mutex<Vec<Weak<Node>>> = Mutex::new(Vec::new());

fn list(node: &Arc<Node>) {
    let mut tape = lock(&TAPE);
    if tape.len() == tape.capacity() {
        // Forgets what is gone before it would grow, so that its length stays in proportion.
        tape.retain(|node| node.strong_count() > 0);
        let room = tape.len().max(256);
        tape.reserve(room);
    }
    tape.push(Arc::downgrade(node));
}

/// One recorded operation, for people to read.
#[derive(Clone, Debug)]
pub struct TapeEntry {
    pub number: u64,
    pub operation: &'static str,
    pub operands: Vec<String>,
    pub output: Meta,
    pub signal: Option<String>,
}

/// What the tape holds now, oldest first.
pub fn tape() -> Vec<TapeEntry> {
    let nodes: Vec<_> = lock(&TAPE).iter().filter_map(Weak::upgrade).collect();
    let entries = nodes.iter().filter_map(|node| match &node.kind {
        NodeKind::Leaf { .. } => None,
        NodeKind::Operation(record) => Some(TapeEntry {
            number: node.number,
            operation: record.operation.name,
            operands: record
                .metas
                .iter()
                .map(|operand| match operand {
                    Operand::Tensor(meta) => format!("{} {}", meta.dtype, meta.shape),
                    Operand::Scalar(scalar) => scalar.to_string(),
                })
                .collect(),
            output: record.output_meta,
            signal: signal::name(record.scope.signal),
        }),
    });
    entries.collect()
}

/// How a backward pass is to run.
#[derive(Clone, Copy, Default)]
pub struct BackwardOptions {
    /// Keep what the graph has saved, for another pass.
    pub retain_graph: bool,
    /// Record the pass itself, for gradients of gradients.
    pub create_graph: bool,
}

/// Sends `gradient` back from `root` and adds to the gradients of all leaves it reaches.
pub fn backward(root: &Tensor, gradient: Option<&Tensor>, options: BackwardOptions) -> Result<()> {
    let reached = run(root, gradient, options, &[])?;
    for (node, grad) in reached.leaves {
        let sum = match node.grad() {
            Some(before) => with_grad(options.create_graph, || before.add(&grad))?,
            None => grad,
        };
        node.set_grad(Some(if options.create_graph { sum } else { sum.detach() }));
    }
    Ok(())
}

/// The gradients of `root` with respect to `inputs`; `None` for one it does not depend on.
pub fn grad(
    root: &Tensor,
    inputs: &[Tensor],
    gradient: Option<&Tensor>,
    options: BackwardOptions,
) -> Result<Vec<Option<Tensor>>> {
    let mut wanted = Vec::with_capacity(inputs.len());
    for input in inputs {
        wanted.push(input.node().ok_or_else(|| {
            ClientError::usage(
                "grad: an input does not require gradients\n  hint: requires_grad=True",
            )
        })?);
    }
    let reached = run(root, gradient, options, &wanted)?;
    Ok(wanted.iter().map(|node| reached.wanted.get(&node.number).cloned()).collect())
}

#[derive(Default)]
struct Reached {
    leaves: Vec<(Arc<Node>, Tensor)>,
    wanted: FxHashMap<u64, Tensor>,
}

/// Nodes in the order of a backward pass: the latest first.
struct Latest(Arc<Node>);

impl PartialEq for Latest {
    fn eq(&self, other: &Latest) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for Latest {}

impl PartialOrd for Latest {
    fn partial_cmp(&self, other: &Latest) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Latest {
    fn cmp(&self, other: &Latest) -> std::cmp::Ordering {
        self.0.number.cmp(&other.0.number)
    }
}

fn run(
    root: &Tensor,
    gradient: Option<&Tensor>,
    options: BackwardOptions,
    wanted: &[Arc<Node>],
) -> Result<Reached> {
    let Some(start) = root.node() else {
        return Err(ClientError::usage(
            "backward: the tensor does not depend on any that requires gradients\n  hint: make one with requires_grad=True, outside of no_grad",
        ));
    };
    let meta = root.meta();
    let seed = match gradient {
        Some(gradient) if gradient.shape() == meta.shape => gradient.cast(meta.dtype)?,
        Some(gradient) => {
            return Err(gt_ir::Error::ShapeMismatch {
                operation: "backward",
                given: gradient.shape(),
                expected: format!("the tensor's own shape {}", meta.shape),
            }
            .into());
        }
        None if meta.shape.numel() == 1 => {
            Tensor::full(&root.session(), meta.shape, 1.0, meta.dtype)?
        }
        None => {
            return Err(ClientError::usage(format!(
                "backward: the tensor has shape {}, and only a single number has a gradient by itself\n  hint: reduce it first (loss.mean()), or give backward(gradient) of that shape",
                meta.shape
            )));
        }
    };
    with_grad(options.create_graph, || walk(start, seed, options, wanted))
}

fn walk(
    start: Arc<Node>,
    seed: Tensor,
    options: BackwardOptions,
    wanted: &[Arc<Node>],
) -> Result<Reached> {
    let mut reached = Reached::default();
    let mut grads: FxHashMap<u64, Tensor> = FxHashMap::default();
    let mut queue = BinaryHeap::new();
    grads.insert(start.number, seed);
    queue.push(Latest(start));
    while let Some(Latest(node)) = queue.pop() {
        // A node is in the queue once for each use; the first time all its gradients are in.
        let Some(grad) = grads.remove(&node.number) else { continue };
        if wanted.iter().any(|wanted| wanted.number == node.number) {
            reached.wanted.insert(node.number, grad.clone());
        }
        match &node.kind {
            NodeKind::Leaf { .. } => reached.leaves.push((Arc::clone(&node), grad)),
            NodeKind::Operation(record) => {
                for (index, operand_grad) in record.gradients(&node, grad, options)? {
                    let parent = record.parents[index].clone().expect("only these are computed");
                    let sum = match grads.remove(&parent.number) {
                        Some(before) => before.add(&operand_grad)?,
                        None => operand_grad,
                    };
                    grads.insert(parent.number, sum);
                    queue.push(Latest(parent));
                }
            }
        }
    }
    Ok(reached)
}

impl Record {
    /// The gradients of those operands that have a node.
    fn gradients(
        &self,
        node: &Arc<Node>,
        grad: Tensor,
        options: BackwardOptions,
    ) -> Result<SmallVec<[(usize, Tensor); 3]>> {
        let mut guard = lock(&self.saved);
        let Some(saved) = guard.as_ref() else {
            return Err(ClientError::usage(format!(
                "backward: the graph of '{}' was given up by an earlier backward\n  hint: use backward(retain_graph=True) the first time",
                self.operation.name
            )));
        };
        let mut graph = Recording { session: grad.session(), vars: Vec::with_capacity(12) };
        let grad = graph.push(grad);
        let mut operands: SmallVec<[Option<Operand<Var>>; 3]> = SmallVec::new();
        for (index, operand) in saved.operands.iter().enumerate() {
            let parent = &self.parents[index];
            operands.push(operand.as_ref().map(|operand| {
                operand.map(|value| graph.push(Tensor::from_parts(value.clone(), parent.clone())))
            }));
        }
        let output = saved
            .output
            .as_ref()
            .map(|value| graph.push(Tensor::from_parts(value.clone(), Some(node.clone()))));
        if options.retain_graph || options.create_graph {
            drop(guard);
        } else {
            *guard = None;
            drop(guard);
        }
        let saved = Saved {
            grad,
            operands: &operands,
            metas: &self.metas,
            output,
            output_meta: self.output_meta,
            attributes: &self.attributes,
        };
        let scope = Scope { signal: self.backward_signal(), backward: 0 };
        Ok(signal::within(scope, || self.apply_rules(&mut graph, &saved)))
    }

    fn apply_rules(&self, graph: &mut Recording, saved: &Saved) -> SmallVec<[(usize, Tensor); 3]> {
        let mut gradients: SmallVec<[(usize, Var); 3]> = SmallVec::new();
        for (index, parent) in self.parents.iter().enumerate() {
            if parent.is_none() {
                continue;
            }
            let raw = match self.operation.gradient {
                Gradient::Each(rules) => rules[index](graph, saved),
                Gradient::Any(rule) => rule(graph, saved, index),
                Gradient::None => unreachable!("such operations are not recorded"),
            };
            let meta = saved.meta(index);
            let graph: &mut dyn Graph = graph;
            let reduced = graph.unbroadcast(raw, meta.shape);
            let reduced = graph.cast(reduced, meta.dtype);
            gradients.push((index, reduced));
        }
        gradients.into_iter().map(|(index, var)| (index, graph.take(var))).collect()
    }

    fn backward_signal(&self) -> u32 {
        match self.scope {
            Scope { backward, .. } if backward != 0 => backward,
            Scope { signal: 0, .. } => 0,
            Scope { signal, .. } => signal::of_gradients(signal),
        }
    }
}

/// A graph that issues what gradient rules build.
struct Recording {
    session: Session,
    vars: Vec<Tensor>,
}

impl Recording {
    fn push(&mut self, tensor: Tensor) -> Var {
        self.vars.push(tensor);
        Var(self.vars.len() as u32 - 1)
    }

    fn take(&self, var: Var) -> Tensor {
        self.vars[var.0 as usize].clone()
    }
}

impl Graph for Recording {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let tensor = {
            let operands: SmallVec<[Operand<&Tensor>; 3]> = operands
                .iter()
                .map(|operand| operand.map(|var| &self.vars[var.0 as usize]))
                .collect();
            Tensor::apply(&self.session, operation, &operands, attributes)
                .expect("gradient rules build valid operations")
        };
        self.push(tensor)
    }

    fn meta(&self, var: Var) -> Meta {
        self.vars[var.0 as usize].meta()
    }

    fn is_transposed(&self, var: Var) -> bool {
        self.vars[var.0 as usize].node().is_some_and(|node| node.is_transpose())
    }
}
