"""Elementwise mathematics in terms of simpler functions."""

from __future__ import annotations

import math

import gt
from gt._gt import Tensor, primitives
from gt._results import Frexp
from gt.ops.annotations import Number
from gt.ops.precision import in_floats
from gt.ops.registry import extend_tensor, function, operation


@operation(in_place=True, autocast="float32")
def reciprocal(input: Tensor) -> Tensor:
    """Return 1 / x.

    >>> gt.reciprocal(gt.tensor([2.0, 4.0]))
    tensor([0.5 , 0.25], dtype=float32)
    """
    return primitives.div(1, input)


@operation
def positive(input: Tensor) -> Tensor:
    """Return the tensor itself, as `+x` does; raise for bool, which has no sign.

    >>> gt.positive(gt.tensor([-1.0]))
    tensor([-1.], dtype=float32)
    """
    if input.dtype == gt.bool:
        raise TypeError("positive: dtype is bool, expected a number")
    return input


@operation(in_place=True)
def deg2rad(input: Tensor) -> Tensor:
    """Convert degrees to radians: x * pi / 180.

    >>> gt.deg2rad(gt.tensor([180.0]))
    tensor([3.1415927], dtype=float32)
    """
    return primitives.mul(input, math.pi / 180)


@operation(in_place=True)
def rad2deg(input: Tensor) -> Tensor:
    """Convert radians to degrees: x * 180 / pi.

    >>> gt.rad2deg(gt.tensor([0.5]))
    tensor([28.64789], dtype=float32)
    """
    return primitives.mul(input, 180 / math.pi)


@function
def rsub(input: Tensor, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
    """Subtract with exchanged operands: `other - alpha * input`.

    >>> gt.rsub(gt.tensor([1.0, 2.0]), 10)
    tensor([9., 8.], dtype=float32)
    """
    return gt.sub(other, input, alpha=alpha)


@operation(in_place=True)
def float_power(input: Tensor | float, exponent: Tensor | float) -> Tensor:
    """Raise to a power in float64.

    >>> gt.float_power(gt.tensor([2.0, 3.0]), 2)
    tensor([4., 9.], dtype=float64)
    """
    return primitives.pow(_double(input), _double(exponent))


def _double(operand: Tensor | float) -> Tensor | float:
    if not isinstance(operand, Tensor):
        return float(operand)
    return operand._cast(gt.complex128 if operand.dtype.is_complex else gt.float64)


@operation(in_place=True)
@in_floats
def sinc(input: Tensor) -> Tensor:
    """Return sin(pi x) / (pi x), and 1 at 0.

    >>> gt.sinc(gt.tensor([0.0, 0.5]))
    tensor([1.        , 0.63661975], dtype=float32)
    """
    angle = primitives.where(input == 0, 1, input * math.pi)
    return primitives.where(input == 0, 1, primitives.sin(angle) / angle)


@operation
@in_floats
def logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """Return log(exp(x) + exp(y)) without overflow: max(x, y) + log(1 + exp(-|x - y|)).

    >>> gt.logaddexp(gt.tensor([1000.0]), gt.tensor([1000.0]))
    tensor([1000.6932], dtype=float32)
    """
    if input.dtype.is_complex:
        return _complex_logaddexp(input, other)
    apart = primitives.where(input == other, 0, input - other)
    return primitives.maximum(input, other) + primitives.log1p(primitives.exp(-apart.abs()))


def _complex_logaddexp(input: Tensor, other: Tensor) -> Tensor:
    """Factor out the number with the larger real part, so that exp does not overflow."""
    first = gt.real(input) >= gt.real(other)
    larger, smaller = primitives.where(first, input, other), primitives.where(first, other, input)
    apart = primitives.where(input == other, 0, smaller - larger)
    return larger + primitives.log(primitives.exp(apart) + 1)


@operation(in_place=True)
@in_floats
def logit(input: Tensor, eps: float | None = None) -> Tensor:
    """Return log(x / (1 - x)), with x clamped to [eps, 1 - eps] if eps is given.

    >>> gt.logit(gt.tensor([0.5, 0.0]), eps=0.25)
    tensor([ 0.       , -1.0986123], dtype=float32)
    """
    if eps is None:
        outside = primitives.logical_or(input < 0, input > 1)
        input = input + primitives.where(outside, math.nan, 0.0)
    else:
        below = primitives.where(input > 1 - eps, 1 - eps, input)
        input = primitives.where(input < eps, eps, below)
    return primitives.log(input) - primitives.log1p(-input)


@operation(in_place=True)
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """Return 0 for negative numbers, 1 for positive ones, and `values` at 0.

    >>> gt.heaviside(gt.tensor([-1.0, 0.0, 2.0]), gt.tensor([0.5]))
    tensor([0. , 0.5, 1. ], dtype=float32)
    """
    if input.dtype != values.dtype:
        raise TypeError(
            f"heaviside: values are {values.dtype.name}, expected the dtype of the input, "
            f"{input.dtype.name}"
        )
    return primitives.where(input == 0, values, primitives.gt(input, 0)._cast(input.dtype))


@operation(in_place=True)
def nan_to_num(
    input: Tensor,
    nan: Number | None = 0.0,
    posinf: Number | None = None,
    neginf: Number | None = None,
) -> Tensor:
    """Replace NaN and infinities by numbers.

    Args:
        input: the tensor.
        nan: the replacement for NaN.
        posinf: the replacement for infinity; the dtype's largest number by default.
        neginf: the replacement for minus infinity; the dtype's lowest number by default.

    >>> gt.nan_to_num(gt.tensor([float("nan"), float("inf")]), posinf=9.0)
    tensor([0., 9.], dtype=float32)
    """
    if not input.dtype.is_floating_point:
        return input.clone()
    limits = gt.finfo(input.dtype)
    result = primitives.where(primitives.isnan(input), 0.0 if nan is None else nan, input)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    result = primitives.where(input == math.inf, high, result)
    return primitives.where(input == -math.inf, low, result)


@operation
def isposinf(input: Tensor) -> Tensor:
    """Return whether each value is plus infinity.

    >>> gt.isposinf(gt.tensor([float("inf"), float("-inf")]))
    tensor([ True, False], dtype=bool)
    """
    return input == math.inf


@operation
def isneginf(input: Tensor) -> Tensor:
    """Return whether each value is minus infinity.

    >>> gt.isneginf(gt.tensor([float("inf"), float("-inf")]))
    tensor([False,  True], dtype=bool)
    """
    return input == -math.inf


@operation
def isreal(input: Tensor) -> Tensor:
    """Return whether each value has no imaginary part, which is true of all that are not complex.

    >>> gt.isreal(gt.tensor([1.0, float("nan")]))
    tensor([ True,  True], dtype=bool)
    """
    return input.imag == 0 if input.dtype.is_complex else gt.ones_like(input, dtype=gt.bool)


@function
def isin(
    elements: Tensor | Number,
    test_elements: Tensor | Number,
    *,
    assume_unique: bool = False,
    invert: bool = False,
) -> Tensor:
    """Return whether each element is among the test elements, by comparing every pair.

    Args:
        elements: the elements to look for; a tensor or a number.
        test_elements: the elements to look among; a tensor or a number.
        assume_unique: accepted and without effect.
        invert: whether to return where an element is not among them.

    >>> gt.isin(gt.tensor([1.0, 2.0, 3.0]), gt.tensor([1.0, 3.0]))
    tensor([ True, False,  True], dtype=bool)
    """
    if isinstance(elements, Tensor):
        elements = elements.unsqueeze(-1)
    if isinstance(test_elements, list | tuple):
        test_elements = gt.tensor(test_elements)
    if isinstance(test_elements, Tensor):
        test_elements = test_elements.reshape(-1)
    pairs = primitives.eq(elements, test_elements)
    found = pairs.any(-1) if pairs.ndim else pairs
    return ~found if invert else found


@operation(in_place=True)
def clamp_min(input: Tensor, min: Tensor | Number) -> Tensor:
    """Limit the values to at least min.

    >>> gt.clamp_min(gt.tensor([-2.0, 3.0]), 0)
    tensor([0., 3.], dtype=float32)
    """
    return gt.clamp(input, min=min)


@operation(in_place=True)
def clamp_max(input: Tensor, max: Tensor | Number) -> Tensor:
    """Limit the values to at most max.

    >>> gt.clamp_max(gt.tensor([-2.0, 3.0]), 0)
    tensor([-2.,  0.], dtype=float32)
    """
    return gt.clamp(input, max=max)


@operation
def logaddexp2(input: Tensor, other: Tensor) -> Tensor:
    """Add in the domain of powers of 2: log2(2^input + 2^other), without overflow.

    >>> gt.logaddexp2(gt.tensor([3.0]), gt.tensor([3.0]))
    tensor([4.], dtype=float32)
    """
    return logaddexp(input * math.log(2), other * math.log(2)) / math.log(2)


@operation(method=False)
def polygamma(n: int, input: Tensor) -> Tensor:
    """Return the n-th derivative of digamma; n is 0 or more.

    >>> gt.polygamma(1, gt.tensor([1.0]))
    tensor([1.644934], dtype=float32)
    """
    if n < 0:
        raise RuntimeError(f"polygamma: n is {n}, expected 0 or more")
    return gt.digamma(input) if n == 0 else primitives.polygamma(input, n)


def _polygamma_of(self: Tensor, n: int) -> Tensor:
    """Return the n-th derivative of digamma."""
    return polygamma(n, self)


def _polygamma_in_place(self: Tensor, n: int) -> Tensor:
    """Store the n-th derivative of digamma in the tensor."""
    return self._assign(polygamma(n, self), "polygamma_")


extend_tensor(polygamma=_polygamma_of, polygamma_=_polygamma_in_place)


@operation(in_place=True)
@in_floats
def ldexp(input: Tensor, other: Tensor) -> Tensor:
    """Multiply by a power of two: `input * 2**other`.

    >>> gt.ldexp(gt.tensor([1.0, 3.0]), gt.tensor([2, -1]))
    tensor([4. , 1.5], dtype=float32)
    """
    return input * primitives.pow(2.0, other)


@operation
def frexp(input: Tensor) -> Frexp:
    """Return the mantissa, from 0.5 up to 1 in size, and the exponent, as int32.

    Each element is mantissa * 2^exponent.

    >>> gt.frexp(gt.tensor([3.0])).mantissa
    tensor([0.75], dtype=float32)
    """
    return Frexp(*primitives.frexp(input))
