"""Steps of optimizers as one operator, and the scale of losses in half precision."""

from __future__ import annotations

import torch

import gt
from gt._gt import torch_device
from gt.torch.kernels import raw


def _has_overflow(grad):
    return (~gt.isfinite(grad)).any().to(gt.float32)


_overflow = torch_device.Kernel("aten::_amp_foreach_non_finite_check_and_unscale_", _has_overflow)


@raw("_amp_foreach_non_finite_check_and_unscale_")
def unscale(self, found_inf, inv_scale):
    for grad in self:
        found_inf.copy_(torch.maximum(found_inf, _overflow(grad)))
        grad.mul_(inv_scale.to(grad.dtype))


@raw("_amp_update_scale_")
def update_scale(
    self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval
):
    overflowed = found_inf > 0
    steps = torch.where(overflowed, 0, growth_tracker + 1)
    grows = steps == growth_interval
    factor = torch.where(overflowed, scale_backoff_factor, 1.0)
    self.mul_(torch.where(grows, scale_growth_factor, factor))
    growth_tracker.copy_(torch.where(grows, 0, steps))
    return self


def _adam(decoupled):
    """Make a step of Adam (Kingma and Ba, 2015), or of AdamW (Loshchilov and Hutter, 2019)."""

    def step(
        self,
        grads,
        exp_avgs,
        exp_avg_sqs,
        max_exp_avg_sqs,
        state_steps,
        *,
        lr,
        beta1,
        beta2,
        weight_decay,
        eps,
        amsgrad,
        maximize,
        grad_scale=None,
        found_inf=None,
    ):
        keeps = None if found_inf is None else found_inf > 0
        for at, parameter in enumerate(self):
            grad = -grads[at] if maximize else grads[at]
            grad = grad if grad_scale is None else grad / grad_scale
            mean, square, count = exp_avgs[at], exp_avg_sqs[at], state_steps[at]
            before = (parameter.clone(), mean.clone(), square.clone()) if keeps is not None else ()
            if weight_decay and decoupled:
                parameter.mul_(1 - lr * weight_decay)
            elif weight_decay:
                grad = grad + weight_decay * parameter
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
            largest = square
            if amsgrad:
                largest = max_exp_avg_sqs[at]
                largest.copy_(torch.maximum(largest, square))
            root = (largest / (1 - beta2**count)).sqrt() + eps
            parameter.sub_(lr / (1 - beta1**count) * mean / root)
            for of, old in zip((parameter, mean, square), before, strict=False):
                of.copy_(torch.where(keeps, old, of))

    return step


raw("_fused_adam_", "_fused_adam_.tensor_lr")(_adam(decoupled=False))
raw("_fused_adamw_", "_fused_adamw_.tensor_lr")(_adam(decoupled=True))


@raw("_fused_sgd_", "_fused_sgd_.tensor_lr")
def sgd(
    self,
    grads,
    momentum_buffer_list,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale=None,
    found_inf=None,
):
    for at, parameter in enumerate(self):
        grad = -grads[at] if maximize else grads[at]
        grad = grad if grad_scale is None else grad / grad_scale
        grad = grad + weight_decay * parameter if weight_decay else grad
        if momentum:
            buffer = momentum_buffer_list[at]
            buffer.copy_(grad if is_first_step else buffer * momentum + (1 - dampening) * grad)
            grad = grad + momentum * buffer if nesterov else buffer
        stepped = parameter - lr * grad
        if found_inf is not None:
            stepped = torch.where(found_inf > 0, parameter, stepped)
        parameter.copy_(stepped)
