"""Composite functions of statistics and physics."""

from __future__ import annotations

import math

import gt
from gt._gt import Tensor, primitives
from gt.autograd import Function
from gt.ops.annotations import Number
from gt.ops.precision import in_floats
from gt.ops.registry import function, operation


@function(namespace="gt.special")
@in_floats
def entr(input: Tensor) -> Tensor:
    """Return the entropy -x log x of each value: 0 at 0, and minus infinity below 0.

    >>> gt.special.entr(gt.tensor([0.0, 1.0]))
    tensor([ 0., -0.], dtype=float32)
    """
    return _Entropy.apply(input)


class _Entropy(Function):
    """-x log x, with the slope -1 - log x also at 0 and below."""

    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        inside = primitives.where(input > 0, input, 1)
        outside = primitives.where(input == 0, 0.0, primitives.where(input < 0, -math.inf, input))
        return primitives.where(input > 0, -inside * primitives.log(inside), outside)

    @staticmethod
    def backward(ctx, grad):
        (input,) = ctx.saved_tensors
        return grad * (-1 - input.log())


@function(namespace="gt.special")
@in_floats
def ndtr(input: Tensor) -> Tensor:
    """Return the normal distribution function, the probability below x: erfc(-x / sqrt(2)) / 2.

    >>> gt.special.ndtr(gt.tensor([0.0, 2.0]))
    tensor([0.5       , 0.97724986], dtype=float32)
    """
    return gt.erfc(input * -math.sqrt(0.5)) * 0.5


@function(namespace="gt.special")
@in_floats
def xlog1py(input: Tensor | Number, other: Tensor | Number) -> Tensor:
    """Return x log(1 + y), with 0 where x is 0, unless y is NaN.

    >>> gt.special.xlog1py(gt.tensor([0.0, 2.0]), gt.tensor([-1.0, 0.0]))
    tensor([0., 0.], dtype=float32)
    """
    without_log = primitives.logical_or(primitives.le(other, -1), primitives.eq(other, math.inf))
    nothing = primitives.logical_and(primitives.eq(input, 0), without_log)
    return primitives.mul(input, primitives.log1p(primitives.where(nothing, 0, other)))


@operation(in_place=True)
@in_floats
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension p, x > (p - 1) / 2.

    It is p (p - 1) / 4 log(pi) + the sum of lgamma(x - j / 2) for j from 0 to p - 1
    (https://en.wikipedia.org/wiki/Multivariate_gamma_function).

    >>> gt.mvlgamma(gt.tensor([1.5]), 2)
    tensor([0.45158267], dtype=float32)
    """
    if p < 1:
        raise ValueError(f"mvlgamma: p is {p}, expected 1 or more")
    terms = (gt.lgamma(input - j / 2) for j in range(p))
    return sum(terms) + p * (p - 1) / 4 * math.log(math.pi)
