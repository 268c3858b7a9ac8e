"""Losses for binary classification: binary cross entropies."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt.autograd import Function
from gt.ops.registry import function

from .common import NN, as_target, check_alike, in_float32, reduced, weighted


class _BinaryCrossEntropy(Function):
    """-(y log p + (1 - y) log(1 - p)), with PyTorch's bounds at p = 0 and p = 1."""

    @staticmethod
    def forward(ctx: Any, p: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(p, y)
        log_p, log_rest = p.log().clamp(min=-100.0), (-p).log1p().clamp(min=-100.0)
        return -(y * log_p + (1 - y) * log_rest)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        p, y = ctx.saved_tensors
        by_p = grad * (p - y) / (p * (1 - p)).clamp(min=1e-12)
        return by_p, grad * ((-p).log1p() - p.log()) if ctx.needs_input_grad[1] else None


@function(namespace=NN, autocast="float32")
@in_float32
def binary_cross_entropy(
    input: Tensor,
    target: Any,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return -(y log p + (1 - y) log(1 - p)) for probabilities p and targets y of one shape.

    Logarithms are clamped to at least -100, so that p may be 0 or 1. For p outside of [0, 1] the
    loss is NaN. PyTorch raises an error instead; GT does not, because that would wait for values.
    `GT_CHECK_NAN=1` finds the operation.

    Args:
        input: probabilities.
        target: probabilities, of the input's shape.
        weight: a factor for each element's loss.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".

    >>> gt.nn.functional.binary_cross_entropy(gt.tensor([0.5, 1.0]), gt.tensor([1.0, 1.0]))
    tensor(0.3465736, dtype=float32)
    """
    target = as_target(target, input)
    check_alike("binary_cross_entropy", input, target)
    loss = weighted(_BinaryCrossEntropy.apply(input, target), weight)
    return reduced("binary_cross_entropy", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Any,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the binary cross entropy of sigmoid(input), exact for inputs of any size.

    Args:
        input: logits: the sigmoid of them is the probability.
        target: probabilities, of the input's shape.
        weight: a factor for each element's loss.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
        pos_weight: a factor for the loss of positive targets; broadcast.

    >>> gt.nn.functional.binary_cross_entropy_with_logits(gt.tensor([0.0]), gt.tensor([1.0]))
    tensor(0.6931472, dtype=float32)
    """
    target = as_target(target, input)
    check_alike("binary_cross_entropy_with_logits", input, target)
    # -log sigmoid(x) is softplus(-x), and -log(1 - sigmoid(x)) is softplus(-x) + x.
    missed = (-input).softplus()
    if pos_weight is not None:
        missed = missed * (1 + (pos_weight - 1) * target)
    loss = weighted((1 - target) * input + missed, weight)
    return reduced("binary_cross_entropy_with_logits", loss, reduction, size_average, reduce)
