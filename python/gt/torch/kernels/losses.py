"""Losses, whose reduction PyTorch's operators have as a number, and their derivatives."""

from __future__ import annotations

import gt
from gt.nn import functional as F
from gt.torch.kernels import kernel
from gt.torch.kernels.tape import vjp, vjp_of_first

_REDUCTIONS = ("none", "mean", "sum")


def _loss(name, function, *names):
    """Register a loss of an input, a target and more, and the gradient of its input."""

    def forward(self, target, *rest, **named):
        given = dict(zip(names, rest, strict=False)) | named
        given["reduction"] = _REDUCTIONS[given.get("reduction", 1)]
        return function(self, target, **given)

    def backward(grad_output, self, target, *rest, **named):
        return vjp_of_first(lambda x: forward(x, target, *rest, **named), grad_output, self)

    kernel(name)(forward)
    kernel(f"{name}_backward")(backward)


_loss("mse_loss", F.mse_loss, "reduction")
_loss("smooth_l1_loss", F.smooth_l1_loss, "reduction", "beta")
_loss("huber_loss", F.huber_loss, "reduction", "delta")
_loss("soft_margin_loss", F.soft_margin_loss, "reduction")
_loss("binary_cross_entropy", F.binary_cross_entropy, "weight", "reduction")
_loss("multi_margin_loss", F.multi_margin_loss, "p", "margin", "weight", "reduction")


@kernel("binary_cross_entropy_with_logits")
def binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=1):
    return F.binary_cross_entropy_with_logits(
        self, target, weight, reduction=_REDUCTIONS[reduction], pos_weight=pos_weight
    )


def _of_target(target, weight, ignore_index, classes, dtype):
    """Give the class of each row, and how much it weighs: nothing where it is ignored."""
    ignored = target == ignore_index
    safe = gt.where(ignored, 0, target).long()
    if weight is None:
        weighs = gt.where(ignored, 0.0, 1.0).to(dtype)
    else:
        weighs = gt.where(ignored, 0.0, weight[safe]).to(dtype)
    return safe, weighs


@kernel("nll_loss_forward", "nll_loss2d_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    axis = 1 if self.ndim > 1 else 0
    safe, weighs = _of_target(target, weight, ignore_index, self.shape[axis], self.dtype)
    losses = -self.gather(axis, safe.unsqueeze(axis)).squeeze(axis) * weighs
    if reduction == 0 and self.ndim > 1:
        return losses, gt.zeros((), dtype=self.dtype)
    total = weighs.sum()
    if reduction == 1:
        return losses.sum() / total, total
    return losses.sum(), total


@kernel("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(grad_output, self, target, weight, reduction, ignore_index, total_weight):
    axis = 1 if self.ndim > 1 else 0
    safe, weighs = _of_target(target, weight, ignore_index, self.shape[axis], self.dtype)
    if reduction == 1:
        grad_output = grad_output / total_weight
    found = -(weighs * grad_output).unsqueeze(axis)
    return gt.zeros_like(self).scatter(axis, safe.unsqueeze(axis), found)


def _is_target(self, target):
    """Give which classes are named before the first negative one."""
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
    grad, log_probs, targets, input_lengths, target_lengths, neg_log_likelihood, log_alpha, blank,
    zero_infinity=False,
):
    def forward(x):
        return _ctc(x, targets, input_lengths, target_lengths, blank, zero_infinity)

    (found,) = vjp(forward, grad, log_probs)
    return found
