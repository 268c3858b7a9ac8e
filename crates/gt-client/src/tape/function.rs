//! Functions with user-defined gradients.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use gt_ir::{Meta, SourceId};
use smallvec::SmallVec;

use super::node::{NodeKind, TapeNode};
use super::{grad_enabled, list, lock};
use crate::error::{ClientError, Result};
use crate::session::{Session, StreamValue};
use crate::signal::{self, Scope};
use crate::source;
use crate::tensor::Tensor;
use crate::vmap::{LevelNumbers, levels_of, without_ended};

/// The arguments of a function's backward.
pub struct BackwardCall<'a> {
    /// The gradient of each output; zeros where none reached it.
    pub grads: &'a [Tensor],
    /// The saved outputs, with their history.
    pub kept: &'a [Tensor],
}

/// Returns the gradient of each input; `None` for those that have none.
pub type Backward = dyn Fn(BackwardCall<'_>) -> Result<Vec<Option<Tensor>>> + Send + Sync;

/// A computation that was run, and the function that computes its gradients.
pub struct Function<'a> {
    pub name: String,
    pub inputs: &'a [Tensor],
    /// Computed without recording.
    pub outputs: &'a [Tensor],
    /// For each output, whether gradients flow through it.
    pub differentiable: &'a [bool],
    /// The outputs that `backward` uses.
    pub kept: &'a [usize],
    pub backward: Box<Backward>,
}

pub(super) struct FunctionRecord {
    pub name: String,
    pub scope: Scope,
    /// The line that called it.
    source: SourceId,
    pub inputs: SmallVec<[Meta; 3]>,
    pub outputs: SmallVec<[Meta; 3]>,
    pub parents: SmallVec<[Option<Arc<TapeNode>>; 3]>,
    /// The `vmap` levels at which each input is mapped over, if an output is.
    levels: Option<Box<[LevelNumbers]>>,
    session: Session,
    kept: OnceLock<Vec<SavedOutput>>,
    /// Dropped after a backward pass that does not retain the graph.
    backward: Mutex<Option<Arc<Backward>>>,
}

/// An output that `backward` uses. It does not own its node, which owns this.
struct SavedOutput {
    index: usize,
    value: Arc<StreamValue>,
    /// `None` for one that gradients do not flow through.
    node: Option<Weak<TapeNode>>,
}

impl SavedOutput {
    /// Returns the output with its history, which is the node of its function.
    fn tensor(&self, of: &Arc<TapeNode>) -> Tensor {
        let again = |node: &Weak<TapeNode>| {
            node.upgrade().unwrap_or_else(|| TapeNode::output(of, self.index))
        };
        Tensor::from_parts(Arc::clone(&self.value), self.node.as_ref().map(again))
    }
}

impl Function<'_> {
    /// Returns the outputs with their history: on the tape if recording is on and an input is on
    /// it.
    #[track_caller]
    pub fn record(self) -> Vec<Tensor> {
        let parents: SmallVec<_> = self.inputs.iter().map(Tensor::node).collect();
        let recorded = grad_enabled() && parents.iter().any(Option::is_some);
        let Some(first) = self.outputs.first().filter(|_| recorded) else {
            return self.outputs.iter().map(Tensor::detach).collect();
        };
        let values = |tensors: &[Tensor]| -> Vec<_> { tensors.iter().map(Tensor::value).collect() };
        let levels = levels_of(values(self.inputs).iter().map(Some), &values(self.outputs));
        let node = TapeNode::new(NodeKind::Function(Box::new(FunctionRecord {
            levels,
            name: self.name,
            scope: signal::current(),
            source: source::current(),
            inputs: self.inputs.iter().map(Tensor::meta).collect(),
            outputs: self.outputs.iter().map(Tensor::meta).collect(),
            parents,
            session: first.session(),
            kept: OnceLock::new(),
            backward: Mutex::new(Some(self.backward.into())),
        })));
        list::add(&node);
        let outputs: Vec<_> = self
            .outputs
            .iter()
            .zip(self.differentiable)
            .enumerate()
            .map(|(index, (output, &differentiable))| {
                let on_tape = differentiable && output.dtype().has_gradients();
                let of = || TapeNode::output(&node, index);
                Tensor::from_parts(output.value(), on_tape.then(of))
            })
            .collect();
        if let NodeKind::Function(record) = &node.kind {
            let keep = |&index: &usize| SavedOutput {
                index,
                value: outputs[index].value(),
                node: outputs[index].node().as_ref().map(Arc::downgrade),
            };
            let _ = record.kept.set(self.kept.iter().map(keep).collect());
        }
        outputs
    }
}

impl FunctionRecord {
    /// Returns the gradients of the inputs that have a node, from the gradients of the outputs.
    pub fn gradients(
        &self,
        node: &Arc<TapeNode>,
        grads: &[Option<Tensor>],
        retain: bool,
    ) -> Result<SmallVec<[(usize, Tensor); 3]>> {
        let name = &self.name;
        let backward =
            if retain { lock(&self.backward).clone() } else { lock(&self.backward).take() };
        let Some(backward) = backward else { return Err(already_freed(name)) };
        let scope = Scope { signal: self.scope.of_gradients(), ..Scope::default() };
        let _line = source::line_scope(source::of_gradient(self.source));
        let inputs = signal::within(scope, || self.call(node, &*backward, grads))?;
        if inputs.len() < self.parents.len()
            || inputs[self.parents.len()..].iter().any(Option::is_some)
        {
            return Err(ClientError::usage(format!(
                "{name}.backward: {} gradients returned for {} inputs\n  hint: return one for each argument of forward, None where there is none",
                inputs.len(),
                self.parents.len()
            )));
        }
        let mut gradients = SmallVec::new();
        for (index, (parent, grad)) in self.parents.iter().zip(inputs).enumerate() {
            if let (Some(_), Some(grad)) = (parent, grad) {
                let whose = format!("{name}.backward");
                let grad = grad.as_gradient_of(self.inputs[index], &whose)?;
                gradients.push((index, self.without_ended(grad, index)?));
            }
        }
        Ok(gradients)
    }

    /// Returns the gradient of an input, summed over the batches of ended `vmap`s.
    fn without_ended(&self, grad: Tensor, index: usize) -> Result<Tensor> {
        match &self.levels {
            Some(levels) => without_ended(grad, &levels[index]),
            None => Ok(grad),
        }
    }

    fn call(
        &self,
        node: &Arc<TapeNode>,
        backward: &Backward,
        grads: &[Option<Tensor>],
    ) -> Result<Vec<Option<Tensor>>> {
        let mut whole = Vec::with_capacity(self.outputs.len());
        for (index, meta) in self.outputs.iter().enumerate() {
            whole.push(match grads.get(index).cloned().flatten() {
                Some(grad) => grad,
                None => Tensor::full(&self.session, meta.shape, 0.0, meta.dtype)?,
            });
        }
        let kept = self.kept.get().map(Vec::as_slice).unwrap_or_default();
        let kept: Vec<_> = kept.iter().map(|output| output.tensor(node)).collect();
        backward(BackwardCall { grads: &whole, kept: &kept })
    }
}

/// Returns the error of a second backward pass over a graph that was not retained.
pub(super) fn already_freed(name: &str) -> ClientError {
    ClientError::usage(format!(
        "backward: the graph of '{name}' was freed by an earlier backward\n  hint: use backward(retain_graph=True) the first time"
    ))
}
