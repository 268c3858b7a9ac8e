//! Changes in place, copies, and views without history. Values never change: a change in place
//! gives a tensor another value (and node).

use std::fmt::Display;
use std::sync::Arc;

use super::Tensor;
use super::apply::two_sessions;
use crate::error::{ClientError, Result};
use crate::tape::grad_enabled;

impl Tensor {
    /// Gives this tensor the value (and history) of another, as in-place operations do.
    ///
    /// # Errors
    /// A leaf that requires gradients, outside of no_grad; another shape or session; a dtype
    /// that this tensor's cannot hold.
    #[track_caller]
    pub fn assign(&self, other: &Tensor, operation: impl Display) -> Result<()> {
        let dtype = self.dtype();
        if !other.dtype().can_cast(dtype) {
            return Err(ClientError::usage(format!(
                "{operation}: a result of dtype {} cannot be stored in a tensor of dtype {dtype}",
                other.dtype()
            )));
        }
        if other.shape() != self.shape() {
            return Err(ClientError::usage(format!(
                "{operation}: shape {} does not fit, expected the tensor's own shape {}",
                other.shape(),
                self.shape()
            )));
        }
        let other = other.cast(dtype)?;
        let (value, node) = (other.value(), other.node());
        let mut state = self.lock();
        if !value.session.is(&state.value.session) {
            return Err(two_sessions(&operation.to_string(), &state.value.session, &value.session));
        }
        let keeps_history = grad_enabled() && !self.bare;
        if keeps_history && state.node.as_ref().is_some_and(|node| node.is_leaf()) {
            return Err(ClientError::usage(format!(
                "{operation}: a leaf tensor that requires gradients cannot be changed in place\n  hint: do it inside `with gt.no_grad():`"
            )));
        }
        if keeps_history
            && let (Some(old), Some(new)) = (&state.node, &node)
            && old.retains_grad()
        {
            new.retain_grad();
        }
        // The old ones are dropped after the lock is released: dropping a value writes to the
        // stream, and dropping a node may run the user's code.
        let old_node = if keeps_history { std::mem::replace(&mut state.node, node) } else { None };
        let old = std::mem::replace(&mut state.value, value);
        drop(state);
        drop((old, old_node));
        Ok(())
    }

    /// The same value without history.
    pub fn detach(&self) -> Tensor {
        Tensor::from_parts(self.value(), None)
    }

    /// A separate tensor with the current value and history of this one: later changes in place of
    /// either do not affect the other.
    pub fn snapshot(&self) -> Tensor {
        Tensor::from_parts(self.value(), self.node())
    }

    /// A separate tensor with the same value, and no copy of the data. Where a gradient is wanted,
    /// an instruction is issued for it to flow back through.
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        let state = self.lock();
        if self.bare || state.node.is_none() || !grad_enabled() {
            return Ok(Tensor::from_parts(Arc::clone(&state.value), None));
        }
        drop(state);
        self.cast_always(self.dtype())
    }

    /// This same tensor seen without its history, as PyTorch's `.data`: changing it in place
    /// changes this tensor, unnoticed by autograd.
    pub fn data(&self) -> Tensor {
        Tensor { state: Arc::clone(&self.state), bare: true }
    }

    /// Gives this tensor another value of the same shape, with that one's dtype, unnoticed by
    /// autograd.
    ///
    /// # Errors
    /// Another shape or session.
    pub fn set_data(&self, other: &Tensor) -> Result<()> {
        if other.shape() != self.shape() {
            let (given, expected) = (other.shape(), format!("the tensor's own {}", self.shape()));
            return Err(gt_ir::Error::ShapeMismatch { operation: "data", given, expected }.into());
        }
        self.check_session(other, "data")?;
        let value = other.value();
        let old = std::mem::replace(&mut self.lock().value, value);
        drop(old);
        Ok(())
    }
}
