"""Losses, whose reduction PyTorch's operators take as a number, and their derivatives."""

from __future__ import annotations

import gt
from gt._gt import primitives
from gt.nn import functional as F
from gt.torch.kernels import kernel
from gt.torch.kernels.tape import vjp, vjp_of_first

_REDUCTIONS = ("none", "mean", "sum")


def _loss(name, function, *names):
    """Register a loss of an input, a target and further arguments, and its input gradient."""

    def forward(self, target, *rest, **named):
        given = dict(zip(names, rest, strict=False)) | named
        given["reduction"] = _REDUCTIONS[given.get("reduction", 1)]
        return function(self, target, **given)

    def backward(grad_output, self, target, *rest, **named):
        return vjp_of_first(lambda x: forward(x, target, *rest, **named), grad_output, self)

    kernel(name)(forward)
    kernel(f"{name}_backward")(backward)


def _of_difference(name, function, slope, *names):
    """Register a loss of input - target and its gradient by `slope`, for grads of any shape."""
    _loss(name, function, "reduction", *names)

    def backward(grad_output, self, target, reduction, *rest):
        share = 1 / max(self.numel(), 1) if reduction == 1 else 1.0
        return slope(self - target, *rest) * share * grad_output

    kernel(f"{name}_backward")(backward)


def _slope_of_smooth_l1(difference, beta):
    if beta == 0:
        return gt.sign(difference)
    return gt.clamp(difference / beta, -1, 1)


_of_difference("mse_loss", F.mse_loss, lambda difference: 2 * difference)
_of_difference("smooth_l1_loss", F.smooth_l1_loss, _slope_of_smooth_l1, "beta")
_of_difference(
    "huber_loss",
    F.huber_loss,
    lambda difference, delta: gt.clamp(difference, -delta, delta),
    "delta",
)
_loss("soft_margin_loss", F.soft_margin_loss, "reduction")
_loss("binary_cross_entropy", F.binary_cross_entropy, "weight", "reduction")
_loss("multi_margin_loss", F.multi_margin_loss, "p", "margin", "weight", "reduction")


@kernel("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=1):
    return F.binary_cross_entropy_with_logits(
        self, target, weight, reduction=_REDUCTIONS[reduction], pos_weight=pos_weight
    )


def _of_target(target, weight, ignore_index, dtype):
    """Return which rows are not ignored, the class of each row, and its weight."""
    counted = primitives.ne(target, ignore_index)
    safe = primitives.where(counted, target, 0)
    if weight is None:
        return counted, safe, primitives.cast(counted, dtype)
    return counted, safe, primitives.where(counted, weight[safe], 0).to(dtype)


@kernel("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    axis = 1 if self.ndim > 1 else 0
    counted, safe, weighs = _of_target(target, weight, ignore_index, self.dtype)
    shape = (*safe.shape[:axis], 1, *safe.shape[axis:])
    taken = primitives.gather(self, axis, primitives.reshape(safe, shape))
    # Ignored rows contribute 0, even if they are NaN.
    losses = primitives.where(counted, -primitives.reshape(taken, safe.shape) * weighs, 0)
    if reduction == 0 and self.ndim > 1:
        return losses, gt.zeros((), dtype=self.dtype)
    total = weighs.sum()
    if reduction == 1:
        return losses.sum() / total, total
    return losses.sum(), total


@kernel("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    axis = 1 if self.ndim > 1 else 0
    counted, safe, weighs = _of_target(target, weight, ignore_index, self.dtype)
    if reduction == 1:
        grad_output = grad_output / total_weight
    shape = (*safe.shape[:axis], 1, *safe.shape[axis:])
    found = primitives.where(counted, -(weighs * grad_output), 0)
    found = primitives.reshape(found, shape)
    zeros = gt.zeros(self.shape, dtype=self.dtype)
    return primitives.scatter(zeros, axis, primitives.reshape(safe, shape), found)


def _is_target(self, target):
    """Return a 0/1 mask of the classes listed before the first negative one."""
    rows = target.reshape(-1, target.shape[-1]) if target.ndim else target.reshape(1, 1)
    named = (rows < 0).long().cumsum(-1) == 0
    safe = gt.where(named, rows, 0)
    found = gt.zeros(*rows.shape, dtype=self.dtype)
    found = found.scatter_reduce(-1, safe, named.to(self.dtype), "amax")
    return found.reshape(target.shape)


@kernel("multilabel_margin_loss_forward")
def multilabel_margin_loss_forward(self, target, reduction):
    found = F.multilabel_margin_loss(self, target, reduction=_REDUCTIONS[reduction])
    return found, _is_target(self, target)


@kernel("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target):
    def forward(x):
        return F.multilabel_margin_loss(x, target, reduction=_REDUCTIONS[reduction])

    return vjp_of_first(forward, grad_output, self)


def _ctc(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, "none", zero_infinity
    )


@kernel("_ctc_loss")
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False):
    losses = _ctc(log_probs, targets, input_lengths, target_lengths, blank, False)
    return losses, gt.zeros(0, dtype=log_probs.dtype)


@kernel("_ctc_loss_backward")
def ctc_loss_backward(
    grad,
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    neg_log_likelihood,
    log_alpha,
    blank,
    zero_infinity=False,
):
    def forward(x):
        return _ctc(x, targets, input_lengths, target_lengths, blank, zero_infinity)

    (found,) = vjp(forward, grad, log_probs)
    return found
