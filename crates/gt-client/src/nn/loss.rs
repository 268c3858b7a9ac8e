//! Losses, each the mean over all samples.

use gt_ir::DType;

use crate::error::Result;
use crate::tape::{BackwardCall, Function, no_grad};
use crate::tensor::Tensor;

/// Returns the mean of squared differences.
#[track_caller]
pub fn mse_loss(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    let difference = prediction.sub(target)?;
    difference.mul(&difference)?.mean(&[], false)
}

/// Returns the mean of -(y log p + (1 - y) log(1 - p)) for probabilities p. As in PyTorch,
/// logarithms are limited to -100 and the gradient's divisor to 1e-12, so that p may be 0 or 1.
#[track_caller]
pub fn binary_cross_entropy(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    let (p, y) = (prediction.clone(), target.without_history());
    let loss = no_grad(|| {
        let floor = Some((-100.0).into());
        let hit = y.mul(&p.log()?.clamp(floor, None)?)?;
        let miss = y.neg()?.add(1.0)?.mul(&p.neg()?.log1p()?.clamp(floor, None)?)?;
        hit.add(&miss)?.neg()
    })?;
    let backward = move |call: BackwardCall<'_>| {
        let spread = p.mul(&p.neg()?.add(1.0)?)?.clamp(Some(1e-12.into()), None)?;
        Ok(vec![Some(call.grads[0].mul(&p.sub(&y)?)?.div(&spread)?)])
    };
    let recorded = Function {
        name: "binary_cross_entropy".into(),
        inputs: std::slice::from_ref(prediction),
        outputs: std::slice::from_ref(&loss),
        differentiable: &[true],
        kept: &[],
        backward: Box::new(backward),
    };
    recorded.record()[0].mean(&[], false)
}

/// Returns the cross entropy of logits (samples x classes) against class indices (samples), or
/// against probabilities of the logits' shape.
#[track_caller]
pub fn cross_entropy_loss(logits: &Tensor, target: &Tensor) -> Result<Tensor> {
    let class_axis = if logits.rank() == 1 { 0 } else { 1 };
    let log = logits.log_softmax(class_axis)?;
    if target.dtype().is_float() {
        return log.mul(target)?.sum(&[class_axis], false)?.mean(&[], false)?.neg();
    }
    let index = target.cast(DType::I64)?.unsqueeze(class_axis)?;
    log.gather(class_axis, &index)?.mean(&[], false)?.neg()
}
