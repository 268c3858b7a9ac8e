//! Functions with user-defined gradients.

use std::panic::Location;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use gt_ir::{Meta, SourceId};
use smallvec::SmallVec;

use super::{NodeKind, TapeNode, list};
use crate::batching::{LevelNumbers, levels_of};
use crate::context::scopes::Scope;
use crate::context::{self, CallSite};
use crate::error::Result;
use crate::session::{Session, StreamValue};
use crate::tensor::Tensor;

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

pub(crate) struct FunctionRecord {
    pub name: String,
    pub scope: Scope,
    /// The line that called it.
    pub source: SourceId,
    pub inputs: SmallVec<[Meta; 3]>,
    pub outputs: SmallVec<[Meta; 3]>,
    pub parents: SmallVec<[Option<Arc<TapeNode>>; 3]>,
    /// The `vmap` levels at which each input is mapped over, if an output is.
    pub levels: Option<Box<[LevelNumbers]>>,
    pub session: Session,
    pub kept: OnceLock<Vec<SavedOutput>>,
    /// Dropped after a backward pass that does not retain the graph.
    pub backward: Mutex<Option<Arc<Backward>>>,
}

/// An output that `backward` uses. It does not own its node, which owns this.
pub(crate) struct SavedOutput {
    index: usize,
    value: Arc<StreamValue>,
    /// `None` for one that gradients do not flow through.
    node: Option<Weak<TapeNode>>,
}

impl SavedOutput {
    /// Returns the output with its history, which is the node of its function.
    pub fn tensor(&self, of: &Arc<TapeNode>) -> Tensor {
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
        context::at(Location::caller(), |site| self.record_at(site))
    }

    fn record_at(self, CallSite { context, source }: CallSite) -> Vec<Tensor> {
        let parents: SmallVec<_> = self.inputs.iter().map(Tensor::node).collect();
        let recorded = context.records_gradients() && parents.iter().any(Option::is_some);
        let Some(first) = self.outputs.first().filter(|_| recorded) else {
            return self.outputs.iter().map(Tensor::detach).collect();
        };
        let values = |tensors: &[Tensor]| -> Vec<_> { tensors.iter().map(Tensor::value).collect() };
        let levels = levels_of(values(self.inputs).iter().map(Some), &values(self.outputs));
        let node = TapeNode::new(NodeKind::Function(Box::new(FunctionRecord {
            levels,
            name: self.name,
            scope: context.scope(),
            source,
            inputs: self.inputs.iter().map(Tensor::meta).collect(),
            outputs: self.outputs.iter().map(Tensor::meta).collect(),
            parents,
            session: first.session(),
            kept: OnceLock::new(),
            backward: Mutex::new(Some(self.backward.into())),
        })));
        list(&node);
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
