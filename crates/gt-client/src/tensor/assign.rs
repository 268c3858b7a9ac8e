//! In-place changes, and copies. Values never change: an in-place change assigns a tensor another
//! value (and node).

use std::fmt::Display;
use std::sync::Arc;

use super::Tensor;
use crate::context::records_gradients;
use crate::error::{ClientError, Result};

impl Tensor {
    /// Assigns this tensor the value (and history) of another, as in-place operations do.
    ///
    /// # Errors
    /// This is a leaf that requires gradients, outside of `no_grad`; `other` has another shape or
    /// session, or a dtype that cannot be cast to this one's.
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
            let (operation, given, own) = (operation.to_string(), other.shape(), self.shape());
            return Err(gt_ir::Error::StoredShape { operation, given, own }.into());
        }
        let other = other.cast(dtype)?;
        self.check_session(&other, &operation.to_string())?;
        self.check_changeable(&operation)?;
        if self.write_through(&other, &operation.to_string())? {
            return Ok(());
        }
        self.replace(&other, &operation.to_string())?;
        if let Some(storage) = &self.lock().storage {
            storage.bump_version();
        }
        Ok(())
    }

    /// Returns an error if the tensor is shared from a publication, or the change would be recorded on a
    /// leaf that requires gradients.
    fn check_changeable(&self, operation: &impl Display) -> Result<()> {
        if self.lock().is_published() {
            return Err(ClientError::usage(format!(
                "{operation}: the tensor is shared by gt.shared, and cannot be changed in place\n  hint: change a copy: tensor.clone()"
            )));
        }
        let keeps_history = records_gradients() && !self.detached;
        if keeps_history && self.lock().node.as_ref().is_some_and(|node| node.is_leaf()) {
            return Err(ClientError::usage(format!(
                "{operation}: a leaf tensor that requires gradients cannot be changed in place\n  hint: do it inside `with gt.no_grad():`"
            )));
        }
        Ok(())
    }

    /// Adopts the value (and history) of another tensor of the same shape and dtype.
    pub(super) fn replace(&self, other: &Tensor, operation: &str) -> Result<()> {
        self.check_changeable(&operation)?;
        self.check_takes(other, operation)?;
        let (value, node) = (other.value(), other.node());
        let mut state = self.lock();
        let keeps_history = records_gradients() && !self.detached;
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

    /// Returns a separate tensor with the current value, and no history.
    pub fn without_history(&self) -> Tensor {
        Tensor::from_parts(self.value(), None)
    }

    /// Returns a separate tensor with the current value and history: later in-place changes of
    /// either do not affect the other.
    pub fn snapshot(&self) -> Tensor {
        Tensor::from_parts(self.value(), self.node())
    }

    /// Returns a separate tensor with the same value, without copying data. If a gradient is
    /// required, an instruction is issued that the gradient flows through.
    #[track_caller]
    pub fn copy(&self) -> Result<Tensor> {
        let state = self.fresh();
        if self.detached || state.node.is_none() || !records_gradients() {
            return Ok(Tensor::from_parts(Arc::clone(&state.value), None));
        }
        drop(state);
        self.cast_always(self.dtype())
    }

    /// Returns a reference to this tensor without its history, like PyTorch's `.data`: its in-place
    /// changes change this tensor, unnoticed by autograd.
    pub fn data(&self) -> Tensor {
        Tensor { state: Arc::clone(&self.state), detached: true }
    }

    /// Adopts the memory of another tensor, with its shape and dtype, unnoticed by autograd: an
    /// in-place change of either is one of both from here on. Existing views keep the old memory.
    ///
    /// # Errors
    /// Another session; a dtype without gradients, where this tensor requires them.
    pub fn set_data(&self, other: &Tensor) -> Result<()> {
        self.check_session(other, "data")?;
        self.check_takes(other, "data")?;
        if !Arc::ptr_eq(&self.state, &other.state) {
            self.share_memory(other);
        }
        Ok(())
    }
}
