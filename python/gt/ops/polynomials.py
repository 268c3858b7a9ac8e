"""Orthogonal polynomials, each by its recurrence (https://dlmf.nist.gov/18.9)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gt
from gt import _gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Number
from gt.ops.precision import in_floats
from gt.ops.registry import function

#: A function of k, x and the polynomials of degrees k and k - 1 that returns the one of k + 1.
Step = Callable[[int, Tensor, Tensor, Tensor], Tensor]


def _polynomial(x: Any, n: Tensor | int, first: Callable[..., Tensor], step: Step) -> Tensor:
    """Return the polynomial of degree n from that of degree 1 by a recurrence; 0 for negative n.

    It is computed in float64, as terms cancel. If n is a tensor, its largest value determines the
    number of steps, and is waited for.
    """
    if not isinstance(n, Tensor):
        return _of_one_degree(x.double(), int(n), first, step)
    x = x.double() if isinstance(x, Tensor) else gt.full_like(n, x, dtype=gt.float64)
    n = n.long()
    before, last = gt.ones_like(x), first(x)
    result = primitives.where(n == 0, before, 0.0)
    for k in range(1, int(_gt.whole_batch(n).max().item()) + 1 if n.numel() else 1):
        result = primitives.where(n == k, last, result)
        before, last = last, step(k, x, last, before)
    return result


def _of_one_degree(x: Tensor, n: int, first: Callable[..., Tensor], step: Step) -> Tensor:
    if n <= 0:
        return gt.ones_like(x) if n == 0 else gt.zeros_like(x)
    before, last = gt.ones_like(x), first(x)
    for k in range(1, n):
        before, last = last, step(k, x, last, before)
    return last


def _chebyshev(k: int, x: Tensor, last: Tensor, before: Tensor) -> Tensor:
    """Return the next Chebyshev polynomial of any kind: 2 x p[k] - p[k - 1]."""
    return 2 * x * last - before


def _shifted(x: Tensor | Number) -> Tensor | Number:
    """Map 0 to 1 to the range of Chebyshev polynomials, -1 to 1."""
    return 2 * x - 1


def _defined(x: Tensor | Number, n: Tensor | int, values: Tensor) -> Tensor:
    """Return the values, with NaN for Hermite polynomials above degree 128 (float64: 512)."""
    double = any(isinstance(of, Tensor) and of.dtype == gt.float64 for of in (x, n))
    limit = 512 if double else 128
    if isinstance(n, Tensor):
        return primitives.where(n > limit, math.nan, values)
    return values if n <= limit else gt.full_like(values, math.nan)


@function(namespace="gt.special")
@in_floats
def chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Chebyshev's polynomial of the first kind of degree n: p[1] = x.

    The recurrence is p[k + 1] = 2 x p[k] - p[k - 1]. If n is a tensor, its values are waited for.

    >>> gt.special.chebyshev_polynomial_t(gt.tensor([0.5, 2.0]), 2)
    tensor([-0.5,  7. ], dtype=float32)
    """
    return _polynomial(input, n, lambda x: x, _chebyshev)


@function(namespace="gt.special")
@in_floats
def chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Chebyshev's polynomial of the second kind of degree n: p[1] = 2 x.

    The recurrence is p[k + 1] = 2 x p[k] - p[k - 1]. If n is a tensor, its values are waited for.

    >>> gt.special.chebyshev_polynomial_u(gt.tensor([0.5, 2.0]), 2)
    tensor([ 0., 15.], dtype=float32)
    """
    return _polynomial(input, n, lambda x: 2 * x, _chebyshev)


@function(namespace="gt.special")
@in_floats
def chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Chebyshev's polynomial of the third kind of degree n: p[1] = 2 x - 1.

    The recurrence is p[k + 1] = 2 x p[k] - p[k - 1]. If n is a tensor, its values are waited for.

    >>> gt.special.chebyshev_polynomial_v(gt.tensor([0.5, 2.0]), 2)
    tensor([-1., 11.], dtype=float32)
    """
    return _polynomial(input, n, lambda x: 2 * x - 1, _chebyshev)


@function(namespace="gt.special")
@in_floats
def chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Chebyshev's polynomial of the fourth kind of degree n: p[1] = 2 x + 1.

    The recurrence is p[k + 1] = 2 x p[k] - p[k - 1]. If n is a tensor, its values are waited for.

    >>> gt.special.chebyshev_polynomial_w(gt.tensor([0.5, 2.0]), 2)
    tensor([ 1., 19.], dtype=float32)
    """
    return _polynomial(input, n, lambda x: 2 * x + 1, _chebyshev)


@function(namespace="gt.special")
@in_floats
def shifted_chebyshev_polynomial_t(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Chebyshev's polynomial of the first kind of degree n at 2 x - 1.

    >>> gt.special.shifted_chebyshev_polynomial_t(gt.tensor([0.75, 1.5]), 2)
    tensor([-0.5,  7. ], dtype=float32)
    """
    return _polynomial(_shifted(input), n, lambda x: x, _chebyshev)


@function(namespace="gt.special")
@in_floats
def shifted_chebyshev_polynomial_u(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Chebyshev's polynomial of the second kind of degree n at 2 x - 1.

    >>> gt.special.shifted_chebyshev_polynomial_u(gt.tensor([0.75, 1.5]), 2)
    tensor([ 0., 15.], dtype=float32)
    """
    return _polynomial(_shifted(input), n, lambda x: 2 * x, _chebyshev)


@function(namespace="gt.special")
@in_floats
def shifted_chebyshev_polynomial_v(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Chebyshev's polynomial of the third kind of degree n at 2 x - 1.

    >>> gt.special.shifted_chebyshev_polynomial_v(gt.tensor([0.75, 1.5]), 2)
    tensor([-1., 11.], dtype=float32)
    """
    return _polynomial(_shifted(input), n, lambda x: 2 * x - 1, _chebyshev)


@function(namespace="gt.special")
@in_floats
def shifted_chebyshev_polynomial_w(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Chebyshev's polynomial of the fourth kind of degree n at 2 x - 1.

    >>> gt.special.shifted_chebyshev_polynomial_w(gt.tensor([0.75, 1.5]), 2)
    tensor([ 1., 19.], dtype=float32)
    """
    return _polynomial(_shifted(input), n, lambda x: 2 * x + 1, _chebyshev)


@function(namespace="gt.special")
@in_floats
def hermite_polynomial_h(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return the physicist's Hermite polynomial of degree n: p[k + 1] = 2 x p[k] - 2 k p[k - 1].

    If n is a tensor, its values are waited for.

    >>> gt.special.hermite_polynomial_h(gt.tensor([0.5, 2.0]), 2)
    tensor([-1., 14.], dtype=float32)
    """
    found = _polynomial(
        input, n, lambda x: 2 * x, lambda k, x, last, before: 2 * x * last - 2 * k * before
    )
    return _defined(input, n, found)


@function(namespace="gt.special")
@in_floats
def hermite_polynomial_he(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return the probabilist's Hermite polynomial of degree n: p[k + 1] = x p[k] - k p[k - 1].

    If n is a tensor, its values are waited for.

    >>> gt.special.hermite_polynomial_he(gt.tensor([0.5, 2.0]), 2)
    tensor([-0.75,  3.  ], dtype=float32)
    """
    found = _polynomial(input, n, lambda x: x, lambda k, x, last, before: x * last - k * before)
    return _defined(input, n, found)


@function(namespace="gt.special")
@in_floats
def laguerre_polynomial_l(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Laguerre's polynomial: p[k + 1] = ((2 k + 1 - x) p[k] - k p[k - 1]) / (k + 1).

    If n is a tensor, its values are waited for.

    >>> gt.special.laguerre_polynomial_l(gt.tensor([0.5, 2.0]), 2)
    tensor([ 0.125, -1.   ], dtype=float32)
    """
    return _polynomial(
        input,
        n,
        lambda x: 1 - x,
        lambda k, x, last, before: ((2 * k + 1 - x) * last - k * before) / (k + 1),
    )


@function(namespace="gt.special")
@in_floats
def legendre_polynomial_p(input: Tensor | Number, n: Tensor | int) -> Tensor:
    """Return Legendre's polynomial: p[k + 1] = ((2 k + 1) x p[k] - k p[k - 1]) / (k + 1).

    If n is a tensor, its values are waited for.

    >>> gt.special.legendre_polynomial_p(gt.tensor([0.5, 2.0]), 2)
    tensor([-0.125,  5.5  ], dtype=float32)
    """
    return _polynomial(
        input,
        n,
        lambda x: x,
        lambda k, x, last, before: ((2 * k + 1) * x * last - k * before) / (k + 1),
    )
