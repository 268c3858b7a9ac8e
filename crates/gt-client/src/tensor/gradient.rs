//! A tensor's gradient: whether it requires one, the accumulated gradient, and hooks.

use std::sync::Arc;

use super::Tensor;
use super::node::TapeNode;
use super::node::hooks::{AccumulatedHook, Hook, HookHandle};
use crate::error::{ClientError, Result};

impl Tensor {
    /// Returns whether operations on the tensor are recorded on the tape.
    pub fn requires_grad(&self) -> bool {
        self.node().is_some()
    }

    /// Returns whether no recorded operation made the tensor.
    pub fn is_leaf(&self) -> bool {
        self.node().is_none_or(|node| node.is_leaf())
    }

    /// Turns gradients for this tensor on or off.
    ///
    /// # Errors
    /// On: the dtype is not a float. Off: the tensor is not a leaf.
    pub fn set_requires_grad(&self, wanted: bool) -> Result<()> {
        if self.detached && wanted {
            return Err(ClientError::usage(
                "requires_grad: `.data` shares its tensor's value and has no history\n  hint: use detach() or clone() for a separate tensor",
            ));
        }
        let mut state = self.lock();
        if wanted && !state.value.meta.dtype.has_gradients() {
            return Err(gt_ir::Error::DTypeMismatch {
                operation: "requires_grad",
                given: state.value.meta.dtype,
                expected: "a float dtype: only these have gradients",
            }
            .into());
        }
        match (wanted, &state.node) {
            (true, None) => state.node = Some(state.frozen.take().unwrap_or_else(TapeNode::leaf)),
            (false, Some(node)) if node.is_leaf() => state.frozen = state.node.take(),
            (false, Some(_)) => {
                return Err(ClientError::usage(
                    "requires_grad: only a leaf's can be turned off\n  hint: use detach()",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Calls `hook` with this tensor's gradient in every backward pass that computes it.
    ///
    /// # Errors
    /// The tensor does not require gradients.
    pub fn register_hook(&self, hook: Hook) -> Result<HookHandle> {
        let node = self.node().ok_or_else(|| no_gradient("register_hook"))?;
        Ok(node.add_hook(hook))
    }

    /// Calls `hook` in every backward pass after it has accumulated the gradient of this leaf.
    ///
    /// # Errors
    /// The tensor does not require gradients, or is not a leaf.
    pub fn register_post_accumulate_grad_hook(&self, hook: AccumulatedHook) -> Result<HookHandle> {
        let name = "register_post_accumulate_grad_hook";
        let node = self.node().ok_or_else(|| no_gradient(name))?;
        if !node.is_leaf() {
            return Err(ClientError::usage(format!(
                "{name}: the tensor is the result of others, and gradients accumulate in leaves only\n  hint: register_hook gets the gradient of any tensor"
            )));
        }
        Ok(node.add_accumulated_hook(hook))
    }

    /// Has backward passes retain this tensor's gradient in [`Tensor::grad`], although it is not a
    /// leaf.
    ///
    /// # Errors
    /// The tensor does not require gradients.
    pub fn retain_grad(&self) -> Result<()> {
        self.node().ok_or_else(|| no_gradient("retain_grad"))?.retain_grad();
        Ok(())
    }

    /// Returns whether its gradient is retained although it is not a leaf.
    pub fn retains_grad(&self) -> bool {
        self.node().is_some_and(|node| node.retains_grad())
    }

    /// Returns the accumulated gradient: a leaf's, or a retained one.
    pub fn grad(&self) -> Option<Tensor> {
        if self.detached {
            return None;
        }
        match self.node() {
            Some(node) => node.grad(),
            None => self.lock().frozen.as_ref()?.grad(),
        }
    }

    /// Replaces the accumulated gradient; `None` clears it.
    ///
    /// # Errors
    /// The gradient has another shape or session; the tensor cannot have a gradient.
    pub fn set_grad(&self, grad: Option<Tensor>) -> Result<()> {
        if let Some(grad) = &grad
            && grad.shape() != self.shape()
        {
            return Err(gt_ir::Error::ShapeMismatch {
                operation: "grad",
                given: grad.shape(),
                expected: self.shape().to_string(),
            }
            .into());
        }
        if let Some(grad) = &grad {
            self.check_session(grad, "grad")?;
        }
        if self.detached {
            return Err(no_gradient("grad"));
        }
        match self.node() {
            Some(node) => node.set_grad(grad),
            None => {
                let leaf = Arc::clone(self.lock().frozen.get_or_insert_with(TapeNode::leaf));
                leaf.set_grad(grad);
            }
        }
        Ok(())
    }
}

fn no_gradient(operation: &str) -> ClientError {
    ClientError::usage(format!(
        "{operation}: the tensor does not require gradients\n  hint: make it with requires_grad=True"
    ))
}
