"""Batch normalization with a fused gradient.

Ioffe and Szegedy, 2015 (https://arxiv.org/abs/1502.03167). With c = x - mean, s = 1 / sqrt(var +
eps), k = s * weight and sums over the axes of the statistics, which have n values each:

    y = c k + bias
    dx = g k - k sum(g) / n - c k s^2 sum(g c) / n

so that the gradient takes two sums and one pass over the data, where the gradients of the single
steps take many. Terms that are constant over a sum, such as mean * k, are computed first, so that
the pass reads x and not c.
"""

from __future__ import annotations

import math
from typing import Any

from gt._gt import Tensor, is_grad_enabled, primitives
from gt.autograd.function import Function


def total(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return the sum over axes, which are kept with length 1.

    The first axis is summed last: sums over neighbouring axes at the end are fast, and leave
    little data for it.
    """
    first, *others = axes
    inner = x.sum(tuple(others), keepdim=True) if others else x
    return inner.sum(first, keepdim=True)


def _statistics(x: Tensor, axes: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance over axes, which are kept with length 1."""
    count = math.prod(x.shape[axis] for axis in axes)
    mean = total(x, axes) / count
    centered = x - mean
    return mean, total(centered * centered, axes) / count


class BatchNormalization(Function):
    """Normalization over axes; returns the output, and mean and variance with axes kept."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, axes: tuple[int, ...], eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Normalize x; weight and bias have its rank, with length 1 along the summed axes."""
        mean, var = _statistics(x, axes)
        ctx.axes, ctx.eps, ctx.statistics = axes, eps, (mean, var)
        ctx.save_for_backward(x, weight)
        scale = (var + eps).rsqrt() * weight
        return primitives.mul_add(bias - mean * scale, x, scale), mean, var

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_mean: Tensor, grad_var: Tensor) -> tuple[Any, ...]:
        """Return the gradients of x, weight and bias."""
        x, weight = ctx.saved_tensors
        count = math.prod(x.shape[axis] for axis in ctx.axes)
        # Second derivatives need the history of the statistics, so these are recomputed.
        mean, var = _statistics(x, ctx.axes) if is_grad_enabled() else ctx.statistics
        scale = (var + ctx.eps).rsqrt()
        product = total(grad * (x - mean), ctx.axes)
        sum_grad = total(grad, ctx.axes)
        factor = scale * weight
        slope = (2 * grad_var - factor * product * scale * scale) / count
        shift = (grad_mean - factor * sum_grad) / count - mean * slope
        rest = primitives.mul_add(shift, x, slope)
        return primitives.mul_add(rest, grad, factor), product * scale, sum_grad, None, None
