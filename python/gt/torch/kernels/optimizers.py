"""Fused optimizer steps, and the operators of gradient scaling."""

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
    scale = self * torch.where(grows, scale_growth_factor, factor)
    # An infinite scale would make all later steps overflow.
    self.copy_(torch.where(torch.isfinite(scale), scale, self))
    growth_tracker.copy_(torch.where(grows, 0, steps))
    return self


class _Step:
    """One parameter's step, which is skipped if a gradient is not finite."""

    def __init__(self, grad, grad_scale, found_inf, maximize):
        self._skips = None if found_inf is None else found_inf > 0
        if grad_scale is not None:
            # As in PyTorch, gradients remain unscaled after the step.
            self.put(grad, grad / grad_scale)
        self.grad = -grad if maximize else grad

    def put(self, to, value):
        """Assign to a tensor unless the step is skipped."""
        to.copy_(value if self._skips is None else torch.where(self._skips, to, value))


def _adam(decoupled):
    """Return a step of Adam (Kingma and Ba, 2015), or of AdamW (Loshchilov and Hutter, 2019)."""

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
        for at, parameter in enumerate(self):
            changes = _Step(grads[at], grad_scale, found_inf, maximize)
            grad, value, count = changes.grad, parameter, state_steps[at]
            if weight_decay and decoupled:
                value = value * (1 - lr * weight_decay)
            elif weight_decay:
                grad = grad + weight_decay * value
            mean = torch.lerp(exp_avgs[at], grad, 1 - beta1)
            square = exp_avg_sqs[at] * beta2 + (1 - beta2) * grad * grad
            largest = square
            if amsgrad:
                largest = torch.maximum(max_exp_avg_sqs[at], square)
                changes.put(max_exp_avg_sqs[at], largest)
            root = (largest / (1 - beta2**count)).sqrt() + eps
            changes.put(parameter, value - lr / (1 - beta1**count) * mean / root)
            changes.put(exp_avgs[at], mean)
            changes.put(exp_avg_sqs[at], square)

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
        changes = _Step(grads[at], grad_scale, found_inf, maximize)
        grad = changes.grad
        grad = grad + weight_decay * parameter if weight_decay else grad
        if momentum:
            buffer = momentum_buffer_list[at]
            moved = grad if is_first_step else buffer * momentum + (1 - dampening) * grad
            changes.put(buffer, moved)
            grad = grad + momentum * moved if nesterov else moved
        changes.put(parameter, parameter - lr * grad)
