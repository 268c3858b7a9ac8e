"""Composite functions of statistics and physics."""

from __future__ import annotations

import functools
import math
import operator

import gt
from gt._gt import Tensor
from gt.ops.precision import in_floats
from gt.ops.registry import function, operation


@function(namespace="gt.special")
@in_floats
def ndtr(input: Tensor) -> Tensor:
    """Return the normal distribution function, the probability below x: erfc(-x / sqrt(2)) / 2.

    >>> gt.special.ndtr(gt.tensor([0.0, 2.0]))
    tensor([0.5       , 0.97724986], dtype=float32)
    """
    return gt.erfc(input * -math.sqrt(0.5)) * 0.5


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
    return functools.reduce(operator.add, terms) + p * (p - 1) / 4 * math.log(math.pi)
