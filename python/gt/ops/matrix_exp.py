"""The exponential of matrices."""

from __future__ import annotations

import math

from gt._gt import Tensor, primitives
from gt.ops.linalg_products import LINALG
from gt.ops.matrices import identity, need_square
from gt.ops.registry import function, operation

#: The degree of the series.
_DEGREE = 19
#: The largest norm for which the next term of the series, norm ** 20 / 20!, rounds to nothing.
_NORM = {"float32": 3.0, "float64": 1.0}
#: The number of halvings at most. Matrices with a norm above 2 ** 32 yield NaN.
_HALVINGS = 32


@operation(autocast="float32")
def matrix_exp(input: Tensor) -> Tensor:
    """Return the exponential of square matrices: the sum of `A ** k / k!` for all k.

    A is halved until its norm is small, and the result squared equally often: scaling and squaring
    (Moler and Van Loan, Nineteen Dubious Ways to Compute the Exponential of a Matrix, 2003). The
    norm is not waited for, so 39 products are computed whatever it is; above 2 ** 32 the result is
    NaN.

    >>> gt.matrix_exp(gt.tensor([[0.0, 1.0], [0.0, 0.0]]))
    tensor([[1., 1.],
            [0., 1.]], dtype=float32)
    """
    need_square("matrix_exp", input)
    if not input.dtype.is_floating_point:
        raise TypeError(
            f"matrix_exp: expected floats, not {input.dtype.name}\n  hint: input.float()"
        )
    if input.numel() == 0:
        return input.clone()
    wide = input.float() if input.dtype.itemsize == 2 else input
    return _scaled_and_squared(wide)._cast(input.dtype)


function(namespace=LINALG)(matrix_exp)


def _scaled_and_squared(a: Tensor) -> Tensor:
    norm = a.detach().abs().sum(-2).amax(-1).unsqueeze(-1).unsqueeze(-1)
    halvings = primitives.ceil(primitives.log2(norm / _NORM[a.dtype.name])).clamp(0, _HALVINGS)
    power = _series(a * primitives.pow(2.0, -halvings))
    for done in range(_HALVINGS):
        power = primitives.where(halvings > done, power @ power, power)
    return primitives.where(norm > 2.0**_HALVINGS, math.nan, power)


def _series(a: Tensor) -> Tensor:
    """Return the sum of a ** k / k!, in blocks of four terms (Paterson and Stockmeyer, 1973)."""
    second = a @ a
    powers = [identity(a), a, second, second @ a]
    fourth = second @ second
    total = _terms(powers, _DEGREE - 3)
    for first in range(_DEGREE - 7, -1, -4):
        total = total @ fourth + _terms(powers, first)
    return total


def _terms(powers: list[Tensor], first: int) -> Tensor:
    """Return the sum of a ** k / (first + k)! for the powers of a from 0 to 3."""
    terms = [power / math.factorial(first + k) for k, power in enumerate(powers)]
    return terms[0] + terms[1] + terms[2] + terms[3]
