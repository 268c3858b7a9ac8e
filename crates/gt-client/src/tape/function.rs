//! The gradients of a function, by its user-defined backward.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::context::Context;
use crate::context::lines::of_gradient;
use crate::context::scopes::Scope;
use crate::error::{ClientError, Result};
use crate::tensor::Tensor;
use crate::tensor::node::function::{Backward, BackwardCall, FunctionRecord};
use crate::tensor::node::{TapeNode, lock};
use crate::vmap::without_ended;

impl FunctionRecord {
    /// Returns the gradients of the inputs that have a node, from the gradients of the outputs.
    pub fn gradients(
        &self,
        context: &Context,
        node: &Arc<TapeNode>,
        grads: &[Option<Tensor>],
        retain: bool,
    ) -> Result<SmallVec<[(usize, Tensor); 3]>> {
        let name = &self.name;
        let backward =
            if retain { lock(&self.backward).clone() } else { lock(&self.backward).take() };
        let Some(backward) = backward else { return Err(already_freed(name)) };
        let scope = Scope { signal: self.scope.of_gradients(), ..Scope::default() };
        let inputs = context.within_line(of_gradient(self.source), || {
            context.within_scope(scope, || self.call(node, &*backward, grads))
        })?;
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
