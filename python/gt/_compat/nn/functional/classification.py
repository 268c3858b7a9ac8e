"""Losses for classification: cross entropies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gt
from gt._gt import Tensor, is_grad_enabled, tensor_beside
from gt.autograd.function import Function
from gt.ops.registry import function

from .common import (
    NN,
    check_alike,
    in_float32,
    reduced,
    reduction_of,
    weighted,
)
from .linears import linear


@function(namespace=NN, autocast="float32")
@in_float32
def nll_loss(
    input: Tensor,
    target: Any,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the input at the class of each target; a mean is weighted by `weight`.

    Args:
        input: logarithms of probabilities; the classes are along axis 1, or along axis 0 of a
            single sample.
        target: class indices, of the input's shape without that axis.
        weight: a factor for each class.
        size_average: deprecated.
        ignore_index: a target class whose samples are ignored.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".

    >>> log_p = gt.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    >>> gt.nn.functional.nll_loss(log_p, gt.tensor([0, 1], dtype=gt.int64), reduction="sum")
    tensor(0.98082924, dtype=float32)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    target = _class_target("nll_loss", input, target)
    return _of_classes("nll_loss", input, _picked, target, weight, ignore_index, reduction)


@function(namespace=NN, autocast="float32")
@in_float32
def cross_entropy(
    input: Tensor,
    target: Any,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of logits: minus the logarithm of softmax at each target.

    Args:
        input: the logits; the classes are along axis 1, or along axis 0 of a single sample.
        target: class indices, of the input's shape without that axis, or probabilities:
            floats of the input's shape.
        weight: a factor for each class.
        size_average: deprecated.
        ignore_index: a target class whose samples are ignored.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
        label_smoothing: the fraction of each target that is spread evenly over all classes.

    >>> gt.nn.functional.cross_entropy(gt.zeros(1, 4), gt.tensor([2], dtype=gt.int64))
    tensor(1.3862944, dtype=float32)
    """
    reduction = reduction_of(reduction, size_average, reduce)
    return _cross_entropy(
        "cross_entropy", input, target, weight, ignore_index, reduction, label_smoothing
    )


@function(namespace=NN, autocast="float32")
@in_float32
def cross_entropy_loss(
    input: Tensor,
    target: Any,
    reduction: str = "mean",
    *,
    weight: Tensor | None = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of logits, as `cross_entropy`, but ignore no target by default.

    Targets are ignored only if `ignore_index` is given.

    >>> gt.nn.functional.cross_entropy_loss(gt.zeros(1, 4), [2])
    tensor(1.3862944, dtype=float32)
    """
    return _cross_entropy(
        "cross_entropy_loss", input, target, weight, ignore_index, reduction, label_smoothing
    )


@function(namespace=NN, autocast="inside")
@in_float32
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """Return the cross entropy of `input @ linear_weight.T + linear_bias`.

    Args:
        input: one sample, or one in each row.
        linear_weight: a row per class, or more axes between the classes and the last axis.
        target: class indices or probabilities, as for `cross_entropy`.
        linear_bias: a bias of the shape of `linear_weight` without its last axis.
        weight: a factor for each class.
        reduction: "mean", "sum" or "none".
        ignore_index: a target class whose samples are ignored, -100 by default.
        label_smoothing: the fraction of each target that is spread evenly over all classes.
        options: accepted as in PyTorch, where they save memory; they have no effect.

    >>> x, rows = gt.ones(1, 2), gt.zeros(4, 2)
    >>> gt.nn.functional.linear_cross_entropy(x, rows, gt.tensor([2], dtype=gt.int64))
    tensor(1.3862944, dtype=float32)
    """
    shape = linear_weight.shape[:-1]
    if not 1 <= input.ndim <= 2 or linear_weight.ndim < 2 or len(shape) >= 2 > input.ndim:
        raise ValueError(
            f"linear_cross_entropy: input of shape {input.shape} and linear_weight of shape "
            f"{linear_weight.shape} do not fit, expected (N, D) and (C, ..., D) or (D) and (C, D)"
        )
    if linear_bias is not None and linear_bias.shape != shape:
        raise ValueError(
            f"linear_cross_entropy: linear_bias has shape {linear_bias.shape}, expected {shape}"
        )
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias)
    logits = logits.reshape(*input.shape[:-1], *shape)
    if target.shape == logits.shape and ignore_index is not None:
        raise ValueError(
            "linear_cross_entropy: ignore_index does not apply to targets that are probabilities"
        )
    ignored = -100 if ignore_index is None else ignore_index
    return _cross_entropy(
        "linear_cross_entropy", logits, target, weight, ignored, reduction, label_smoothing
    )


def _cross_entropy(
    name: str,
    logits: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignored: int | None,
    reduction: str,
    smoothing: float,
) -> Tensor:
    """Return the cross entropy of logits and class indices or probabilities."""
    if not 0 <= smoothing <= 1:
        raise ValueError(f"{name}: label_smoothing is {smoothing}, expected 0 to 1")
    target = _class_target(name, logits, target)
    axis = _class_axis(logits)
    if not target.dtype.is_floating_point:
        # Label smoothing needs the log probabilities of all classes.
        logits, loss_of = (
            (logits.log_softmax(axis), _picked) if smoothing else (logits, EntropyOfClasses.apply)
        )
        return _of_classes(name, logits, loss_of, target, weight, ignored, reduction, smoothing)
    if ignored is not None and ignored >= 0:
        raise ValueError(
            f"{name}: ignore_index is {ignored}, but the targets are probabilities, none of which "
            "can be ignored\n  hint: give class indices, or no ignore_index"
        )
    log_p = logits.log_softmax(axis)
    check_alike(name, logits, target)
    if smoothing:
        target = target * (1 - smoothing) + smoothing / logits.shape[axis]
    weight = _class_weight(name, log_p, weight)
    return reduced(name, -weighted(log_p * target, weight).sum(axis), reduction)


def _picked(log_p: Tensor, axis: int, index: Tensor) -> Tensor:
    """Return minus the values at the indices."""
    return -log_p.gather(axis, index)


class EntropyOfClasses(Function):
    """Minus the logarithm of softmax at class indices.

    The gradient is grad * softmax, minus grad at the indices: one pass, whereas the gradients of
    softmax and of gather would each be a tensor of the logits' shape.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, axis: int, index: Tensor) -> Tensor:
        """Return the loss of each sample, with an axis of length 1 in place of the classes."""
        log_p = logits.log_softmax(axis)
        ctx.axis, ctx.log_p = axis, log_p
        ctx.save_for_backward(logits, index)
        return -log_p.gather(axis, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """Return the gradient of the logits."""
        logits, index = ctx.saved_tensors
        # For second derivatives, the logarithms need a history.
        log_p = logits.log_softmax(ctx.axis) if is_grad_enabled() else ctx.log_p
        return (log_p.exp() * grad).scatter_add(ctx.axis, index, -grad), None, None


def _class_axis(input: Tensor) -> int:
    return 0 if input.ndim == 1 else 1


def _class_target(name: str, input: Tensor, target: Any) -> Tensor:
    """Return a target as a tensor: class indices, or probabilities of the input's shape."""
    if not isinstance(target, Tensor):
        dtype = None if hasattr(target, "dtype") else "int64"
        target = tensor_beside(input, target, dtype=dtype)
    floats = target.dtype.is_floating_point
    if input.ndim == 0:
        raise ValueError(f"{name}: input has no axes, expected an axis of classes")
    if floats and (target.ndim == input.ndim - 1 or name == "nll_loss"):
        raise TypeError(
            f"{name}: class indices must be integers, these are {target.dtype.name}\n"
            "  hint: gt.tensor([...], dtype=gt.int64), or target.long()"
        )
    axis = _class_axis(input)
    expected = input.shape[:axis] + input.shape[axis + 1 :]
    if not floats and target.shape != expected:
        raise ValueError(
            f"{name}: class indices of shape {target.shape} do not fit an input of shape "
            f"{input.shape}, expected {expected}"
        )
    return target


def _class_weight(name: str, input: Tensor, weight: Tensor | None) -> Tensor | None:
    """Return the factors of the classes in a shape that broadcasts to the input's."""
    axis = _class_axis(input)
    if weight is None:
        return None
    if weight.shape != input.shape[axis : axis + 1]:
        raise ValueError(
            f"{name}: weight of shape {weight.shape} does not fit {input.shape[axis]} classes"
        )
    return weight.reshape([-1] + [1] * (input.ndim - axis - 1))


def _of_classes(
    name: str,
    input: Tensor,
    loss_of: Callable[..., Tensor],
    target: Tensor,
    weight: Tensor | None,
    ignored: int | None,
    reduction: str,
    smoothing: float = 0.0,
) -> Tensor:
    """Return the loss for class indices; a mean is over the total weight of the samples.

    `loss_of` returns the loss of each sample from the input, the axis of classes and the indices,
    with an axis of length 1 in place of the classes. With smoothing, the input holds logarithms.
    """
    axis = _class_axis(input)
    weight = _class_weight(name, input, weight)
    counted = None if ignored is None else target != ignored
    index = target.long() if counted is None else gt.where(counted, target.long(), 0)
    index = index.unsqueeze(axis)
    loss, share = loss_of(input, axis, index), None
    if weight is not None:
        share = weight.expand(input.shape).gather(axis, index)
        loss = loss * share
    if smoothing:
        spread = weighted(input, weight).mean(axis, keepdim=True)
        loss = loss * (1 - smoothing) - spread * smoothing
    loss, counts = loss.squeeze(axis), None if share is None else share.squeeze(axis)
    if counted is not None:
        # Not a product with 0: an ignored loss may be infinite.
        loss = gt.where(counted, loss, 0)
        counts = counted if counts is None else counts * counted
    if counts is None or reduction != "mean":
        return reduced(name, loss, reduction)
    return loss.sum() / counts.sum()
