//! Tensors that are mapped over by a `vmap`.

use std::sync::Arc;

use super::Tensor;
use crate::batching::{levels, nest};
use crate::context::level::Level;
use crate::error::{ClientError, Result};

impl Tensor {
    /// Returns whether it is mapped over, so that it stands for a batch of values.
    pub fn is_batched(&self) -> bool {
        self.value().batched.is_some()
    }

    /// Returns the values of the whole batch without history, with the axes of all levels in front,
    /// outermost first. For checks of results only.
    pub fn whole(&self) -> Tensor {
        let mut value = self.value();
        while let Some(batched) = &value.batched {
            value = Arc::clone(&batched.of);
        }
        Tensor::from_parts(value, None)
    }

    /// Returns whether it is mapped over at a level.
    pub fn is_mapped_at(&self, level: &Level) -> bool {
        levels(&self.value()).contains(&level.number)
    }

    /// Returns an error if the tensor is mapped over; `what` needs its values.
    pub fn check_has_values(&self, what: &str) -> Result<()> {
        if !self.is_batched() {
            return Ok(());
        }
        Err(ClientError::usage(format!(
            "vmap: It looks like you're calling {what} on a Tensor. We don't support vmap over calling {what} on a Tensor, please try to rewrite what you're doing with other operations.\n  hint: inside vmap a tensor stands for all of the batch"
        )))
    }

    /// Returns an error if the tensor is mapped over: a result's shape cannot depend on it.
    pub(crate) fn check_countable(&self) -> Result<()> {
        if !self.is_batched() {
            return Ok(());
        }
        Err(ClientError::usage(
            "vmap: We do not support batching operators that can output dynamic shape. Attempting to vmap over nonzero or indexing with a boolean mask\n  hint: gt.where(mask, a, b) keeps the shape",
        ))
    }

    /// Returns an error if `other` is mapped over by a `vmap` that this tensor is older than.
    pub(crate) fn check_takes(&self, other: &Tensor, operation: &str) -> Result<()> {
        let other = other.value();
        if other.batched.is_none() {
            return Ok(());
        }
        let own = self.current_value();
        let own_levels = levels(&own);
        let outgrown = nest(&other).any(|level| {
            let is_older = own.session.number() == level.session && own.is_older_than(level.first);
            is_older && !own_levels.contains(&level.number)
        });
        if !outgrown {
            return Ok(());
        }
        Err(ClientError::usage(format!(
            "vmap: {operation}: a change in place is not possible because another tensor is being vmapped over, but this one is not, and was made outside\n  hint: use the out-of-place operation"
        )))
    }
}
