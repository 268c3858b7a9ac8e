//! Tensors that enter and leave a `vmap`, on the tape.

use std::panic::Location;
use std::sync::Arc;

use super::Level;
use crate::batching::{LevelNumbers, nest, with_level, without_level};
use crate::context;
use crate::error::{ClientError, Result};
use crate::session::StreamValue;
use crate::tensor::Tensor;
use crate::tensor::node::function::{BackwardCall, Function};

impl Tensor {
    /// Returns the tensor mapped over its first axis at a level.
    ///
    /// # Errors
    /// The axis is not as long as the level's batch.
    #[track_caller]
    pub fn enter_level(&self, level: &Arc<Level>) -> Result<Tensor> {
        if self.shape().first() != Some(&level.size) {
            return Err(ClientError::usage(format!(
                "vmap: a tensor of shape {} has no first axis of length {}",
                self.shape(),
                level.size
            )));
        }
        let caller = Location::caller();
        let value = context::at(caller, |site| with_level(site, self.value(), level))?;
        self.crossed(value, level, Tensor::leave_level)
    }

    /// Returns the tensor with the batch axis of a level in front; a tensor that is not mapped over
    /// is repeated along it.
    ///
    /// # Errors
    /// The result would have more axes than a tensor may have.
    #[track_caller]
    pub fn leave_level(&self, level: &Arc<Level>) -> Result<Tensor> {
        let caller = Location::caller();
        let value = context::at(caller, |site| without_level(site, &self.value(), level))?;
        self.crossed(value, level, Tensor::enter_level)
    }

    /// Records `value`, which is this tensor inside or outside of the level; `back` converts its
    /// gradient.
    #[track_caller]
    fn crossed(
        &self,
        value: Arc<StreamValue>,
        level: &Arc<Level>,
        back: fn(&Tensor, &Arc<Level>) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let crossed = Tensor::from_parts(value, None);
        if self.node().is_none() || !context::records_gradients() {
            return Ok(crossed);
        }
        let level = Arc::clone(level);
        let backward = move |call: BackwardCall<'_>| Ok(vec![Some(back(&call.grads[0], &level)?)]);
        let function = Function {
            name: "vmap".to_string(),
            inputs: std::slice::from_ref(self),
            outputs: &[crossed],
            differentiable: &[true],
            kept: &[],
            backward: Box::new(backward),
        };
        Ok(function.record().swap_remove(0))
    }
}

/// Returns the gradient of an operand that is mapped over at the levels in `own`: summed over the
/// batches of ended `vmap`s that only the result was mapped over by.
pub(crate) fn without_ended(grad: Tensor, own: &LevelNumbers) -> Result<Tensor> {
    let value = grad.value();
    let ended = nest(&value).find(|level| level.is_over() && !own.contains(&level.number));
    let Some(level) = ended else { return Ok(grad) };
    let whole = grad.leave_level(level)?;
    without_ended(whole.sum(&[0], false)?, own)
}
