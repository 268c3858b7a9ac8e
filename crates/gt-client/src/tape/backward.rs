//! Backward passes: gradients propagate from some tensors to the leaves, the latest node first.

use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::context::{self, Context};
use crate::error::{ClientError, Result};
use crate::tensor::Tensor;
use crate::tensor::node::{NodeKind, TapeNode};

/// Options of a backward pass.
#[derive(Clone, Copy, Default)]
pub struct BackwardOptions {
    /// Keep the values that the graph has saved, for another pass.
    pub retain_graph: bool,
    /// Record the pass itself, for gradients of gradients.
    pub create_graph: bool,
}

/// A tensor that a backward pass starts from, and its gradient; `None` is 1, for a single number.
pub type Root<'a> = (&'a Tensor, Option<&'a Tensor>);

/// Propagates the gradients of `roots` and accumulates them in all leaves that they reach.
pub fn backward(roots: &[Root<'_>], options: BackwardOptions) -> Result<()> {
    check_no_vmap()?;
    let reached = run(roots, options, &[])?;
    reached.leaves.into_iter().try_for_each(|(node, grad)| accumulate(&node, grad, options))
}

/// Like [`backward`], but accumulates in the gradients of `inputs` only.
pub fn backward_to(roots: &[Root<'_>], inputs: &[Tensor], options: BackwardOptions) -> Result<()> {
    check_no_vmap()?;
    if inputs.is_empty() {
        return Err(ClientError::usage(
            "backward: inputs is empty, expected at least one tensor\n  hint: leave it out to accumulate the gradients of all leaves",
        ));
    }
    if inputs.iter().any(|input| !input.is_leaf()) {
        return Err(ClientError::usage(
            "backward: one of inputs is the result of other tensors, so its gradient is not retained\n  hint: gt.autograd.grad returns it",
        ));
    }
    let grads = grad(roots, inputs, options)?;
    for (input, grad) in inputs.iter().zip(grads) {
        if let (Some(node), Some(grad)) = (input.node(), grad) {
            accumulate(&node, grad, options)?;
        }
    }
    Ok(())
}

/// Returns an error inside `vmap`: a leaf's gradient would outlive the `vmap`.
fn check_no_vmap() -> Result<()> {
    if !context::with(Context::is_in_vmap) {
        return Ok(());
    }
    Err(ClientError::usage(
        "backward() called inside vmap: this is not supported\n  hint: use gt.func.grad, gt.func.vjp or gt.autograd.grad, or call backward() outside",
    ))
}

/// Adds a gradient to that of a leaf, and calls the hooks that run afterwards.
fn accumulate(leaf: &TapeNode, grad: Tensor, options: BackwardOptions) -> Result<()> {
    within_pass(options, |_| {
        let sum = match leaf.grad() {
            Some(before) => before.add(&grad)?,
            None => grad,
        };
        leaf.set_grad(Some(if options.create_graph { sum } else { sum.without_history() }));
        leaf.run_accumulated_hooks()
    })
}

/// Runs a part of a backward pass: recorded if `options` says so, and without autocast.
fn within_pass<T>(options: BackwardOptions, body: impl FnOnce(&Context) -> T) -> T {
    context::with(|context| {
        context.without_autocast(|| context.with_gradients(options.create_graph, || body(context)))
    })
}

/// Returns the gradients of the sum of `roots` with respect to `inputs`; `None` for an input that
/// no root depends on.
pub fn grad(
    roots: &[Root<'_>],
    inputs: &[Tensor],
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
    let reached = run(roots, options, &wanted)?;
    Ok(wanted.iter().map(|node| reached.wanted.get(&node.number).cloned()).collect())
}

#[derive(Default)]
struct ReachedGradients {
    leaves: Vec<(Arc<TapeNode>, Tensor)>,
    wanted: FxHashMap<u64, Tensor>,
}

/// A node, ordered for a backward pass: the latest first.
struct QueuedNode(Arc<TapeNode>);

impl PartialEq for QueuedNode {
    fn eq(&self, other: &QueuedNode) -> bool {
        self.0.number == other.0.number
    }
}

impl Eq for QueuedNode {}

impl PartialOrd for QueuedNode {
    fn partial_cmp(&self, other: &QueuedNode) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for QueuedNode {
    fn cmp(&self, other: &QueuedNode) -> std::cmp::Ordering {
        self.0.number.cmp(&other.0.number)
    }
}

fn run(
    roots: &[Root<'_>],
    options: BackwardOptions,
    wanted: &[Arc<TapeNode>],
) -> Result<ReachedGradients> {
    let starts = roots.iter().map(|root| start(root)).collect::<Result<Vec<_>>>()?;
    within_pass(options, |context| walk(context, starts, options, wanted))
}

/// Returns the node of a root, and its gradient.
fn start(&(root, gradient): &Root<'_>) -> Result<(Arc<TapeNode>, Tensor)> {
    let Some(node) = root.node() else {
        return Err(ClientError::usage(
            "backward: the tensor does not depend on any that requires gradients\n  hint: make one with requires_grad=True, outside of no_grad",
        ));
    };
    let meta = root.meta();
    let seed = match gradient {
        Some(gradient) if gradient.shape() == meta.shape => {
            root.check_session(gradient, "backward")?;
            gradient.cast(meta.dtype)?
        }
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
                "backward: the tensor has shape {}, and only a single number has a gradient by itself\n  hint: reduce it first (loss.mean()), or pass backward(gradient) of that shape",
                meta.shape
            )));
        }
    };
    Ok((node, seed))
}

fn walk(
    context: &Context,
    starts: Vec<(Arc<TapeNode>, Tensor)>,
    options: BackwardOptions,
    wanted: &[Arc<TapeNode>],
) -> Result<ReachedGradients> {
    let mut reached = ReachedGradients::default();
    let towards = nodes_towards(starts.iter().map(|(node, _)| Arc::clone(node)).collect(), wanted);
    let mut pass = BackwardPass { towards, ..BackwardPass::default() };
    for (node, gradient) in starts {
        pass.add(&node, gradient)?;
    }
    while let Some(QueuedNode(node)) = pass.queue.pop() {
        if let Some(grads) = pass.outputs.remove(&node.number) {
            if pass.leads_to_wanted(&node) {
                pass.propagate_outputs(context, &node, grads, options)?;
            }
            continue;
        }
        // A node is in the queue once for each use; the first time all its gradients are in.
        let Some(grad) = pass.grads.remove(&node.number) else { continue };
        let grad = node.run_hooks(grad)?;
        if wanted.iter().any(|wanted| wanted.number == node.number) {
            reached.wanted.insert(node.number, grad.clone());
        }
        match &node.kind {
            NodeKind::Leaf { .. } => reached.leaves.push((Arc::clone(&node), grad)),
            _ if !pass.leads_to_wanted(&node) => {}
            NodeKind::Operation(record) => {
                for (index, grad) in record.gradients(context, &node, &[Some(grad)], options)? {
                    pass.add_to(&record.parents[index], grad)?;
                }
            }
            NodeKind::Output { of, index } => {
                pass.add_output(of, *index, grad)?;
            }
            NodeKind::Function(_) => unreachable!("its gradients are those of its outputs"),
        }
    }
    Ok(reached)
}

/// The gradients in flight.
#[derive(Default)]
struct BackwardPass {
    queue: BinaryHeap<QueuedNode>,
    grads: FxHashMap<u64, Tensor>,
    /// Gradients of nodes with several results, by output.
    outputs: FxHashMap<u64, Vec<Option<Tensor>>>,
    /// The nodes on a path to the requested ones, and these; all, if none is named.
    towards: Option<FxHashSet<u64>>,
}

/// Returns the nodes from which a requested one can be reached, and the requested ones.
fn nodes_towards(starts: Vec<Arc<TapeNode>>, wanted: &[Arc<TapeNode>]) -> Option<FxHashSet<u64>> {
    if wanted.is_empty() {
        return None;
    }
    let mut seen = BTreeMap::new();
    let mut pending = starts;
    while let Some(node) = pending.pop() {
        if seen.insert(node.number, Arc::clone(&node)).is_none() {
            pending.extend(node.parents().cloned());
        }
    }
    let mut towards: FxHashSet<u64> = wanted.iter().map(|node| node.number).collect();
    // Parents have smaller numbers, so they are visited first.
    for (number, node) in seen {
        if node.parents().any(|parent| towards.contains(&parent.number)) {
            towards.insert(number);
        }
    }
    Some(towards)
}

impl BackwardPass {
    fn add(&mut self, node: &Arc<TapeNode>, grad: Tensor) -> Result<()> {
        let sum = match self.grads.remove(&node.number) {
            Some(before) => before.add(&grad)?,
            None => grad,
        };
        self.grads.insert(node.number, sum);
        self.queue.push(QueuedNode(Arc::clone(node)));
        Ok(())
    }

    /// Accumulates the gradient of one of several results: a saved result arrives by its own node.
    fn add_output(&mut self, of: &Arc<TapeNode>, index: usize, grad: Tensor) -> Result<()> {
        let outputs = self.outputs.entry(of.number).or_default();
        outputs.resize(outputs.len().max(index + 1), None);
        outputs[index] = Some(match outputs[index].take() {
            Some(before) => before.add(&grad)?,
            None => grad,
        });
        self.queue.push(QueuedNode(Arc::clone(of)));
        Ok(())
    }

    /// Propagates the gradients of several results through their operation.
    fn propagate_outputs(
        &mut self,
        context: &Context,
        node: &Arc<TapeNode>,
        mut grads: Vec<Option<Tensor>>,
        options: BackwardOptions,
    ) -> Result<()> {
        let (parents, gradients) = match &node.kind {
            NodeKind::Function(record) => {
                let retain = options.retain_graph || options.create_graph;
                (&record.parents, record.gradients(context, node, &grads, retain)?)
            }
            NodeKind::Operation(record) => {
                grads.resize(record.results.len(), None);
                (&record.parents, record.gradients(context, node, &grads, options)?)
            }
            NodeKind::Leaf { .. } | NodeKind::Output { .. } => {
                unreachable!("these give one tensor")
            }
        };
        for (index, grad) in gradients {
            self.add_to(&parents[index], grad)?;
        }
        Ok(())
    }

    fn add_to(&mut self, parent: &Option<Arc<TapeNode>>, grad: Tensor) -> Result<()> {
        let parent = parent.as_ref().expect("only these are computed");
        if self.towards.as_ref().is_some_and(|towards| !towards.contains(&parent.number)) {
            return Ok(());
        }
        self.add(parent, grad)
    }

    /// Returns whether a requested node lies beyond a node.
    fn leads_to_wanted(&self, node: &TapeNode) -> bool {
        self.towards
            .as_ref()
            .is_none_or(|towards| node.parents().any(|parent| towards.contains(&parent.number)))
    }
}

/// Returns whether the gradient of `root` reaches a leaf or a node beyond `inputs`.
pub fn reaches_others(root: &Tensor, inputs: &[Tensor]) -> bool {
    let own: FxHashSet<u64> = inputs.iter().filter_map(|of| Some(of.node()?.number)).collect();
    if inputs.iter().any(|input| !input.is_leaf()) {
        return true;
    }
    let mut seen = FxHashSet::default();
    let mut pending: Vec<Arc<TapeNode>> = root.node().into_iter().collect();
    while let Some(node) = pending.pop() {
        if own.contains(&node.number) || !seen.insert(node.number) {
            continue;
        }
        if node.is_leaf() {
            return true;
        }
        pending.extend(node.parents().cloned());
    }
    false
}

impl Tensor {
    /// Adds the gradients of this tensor to those of all leaves it depends on.
    #[track_caller]
    pub fn backward(&self) -> Result<()> {
        backward(&[(self, None)], BackwardOptions::default())
    }
}
