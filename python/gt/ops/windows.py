"""Windows: factors that fade out the ends of a signal.

Formulas: https://en.wikipedia.org/wiki/Window_function. A symmetric window of length M is 1 in its
middle; a periodic one is a symmetric one of length M + 1 without its last value.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import gt
from gt._gt import Tensor, parse_dtype
from gt.ops.annotations import DType
from gt.ops.create import creation
from gt.ops.registry import function

NAMESPACE = "gt.signal.windows"


def window(shape: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Register a window function that checks its length and dtype."""

    @functools.wraps(shape)
    def checked(M: int, *, dtype: DType | None = None, **options: Any) -> Tensor:
        name = shape.__name__
        if M < 0:
            raise ValueError(f"{name}: M is {M}, expected 0 or more")
        wanted = gt.get_default_dtype() if dtype is None else parse_dtype(dtype)
        if wanted not in (gt.float32, gt.float64):
            raise ValueError(f"{name}: dtype is {wanted.name}, expected float32 or float64")
        return shape(M, dtype=wanted, **options)

    return function(namespace=NAMESPACE)(creation(checked))


def _steps(M: int, start: float, step: float, dtype: DType | None) -> Tensor:
    """Return start, start + step, ...: M numbers."""
    return gt.linspace(start, start + (M - 1) * step, M, dtype=dtype)


def _parts(M: int, sym: bool) -> int:
    """Return the number of steps from one end of a window to the other, at least 1."""
    return max(M - 1 if sym else M, 1)


@window
def general_cosine(
    M: int, *, a: Sequence[float], sym: bool = True, dtype: DType | None = None
) -> Tensor:
    """Return a sum of cosines: a[0] - a[1] cos(z) + a[2] cos(2 z) - ... for z = 2 pi n / (M - 1).

    >>> gt.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.], dtype=float32)
    """
    if not a:
        raise ValueError("general_cosine: a is empty, expected one coefficient or more")
    if M == 1:
        return gt.ones(1, dtype=dtype)
    angle = _steps(M, 0, 2 * math.pi / _parts(M, sym), dtype)
    return sum((-1) ** i * factor * gt.cos(angle * i) for i, factor in enumerate(a))


@window
def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, dtype: DType | None = None
) -> Tensor:
    """Return alpha - (1 - alpha) cos(2 pi n / (M - 1)).

    >>> gt.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.], dtype=float32)
    """
    return general_cosine(M, a=[alpha, 1 - alpha], sym=sym, dtype=dtype)


@window
def hamming(M: int, *, sym: bool = True, dtype: DType | None = None) -> Tensor:
    """Return 0.54 - 0.46 cos(2 pi n / (M - 1)).

    >>> gt.signal.windows.hamming(3)
    tensor([0.08000001, 1.        , 0.08000001], dtype=float32)
    """
    return general_cosine(M, a=[0.54, 0.46], sym=sym, dtype=dtype)


@window
def hann(M: int, *, sym: bool = True, dtype: DType | None = None) -> Tensor:
    """Return (1 - cos(2 pi n / (M - 1))) / 2.

    >>> gt.signal.windows.hann(3)
    tensor([0., 1., 0.], dtype=float32)
    """
    return general_cosine(M, a=[0.5, 0.5], sym=sym, dtype=dtype)


@window
def blackman(M: int, *, sym: bool = True, dtype: DType | None = None) -> Tensor:
    """Return 0.42 - 0.5 cos(z) + 0.08 cos(2 z) for z = 2 pi n / (M - 1).

    >>> gt.signal.windows.blackman(5)[1:4]
    tensor([0.34000003, 0.99999994, 0.33999997], dtype=float32)
    """
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype)


@window
def nuttall(M: int, *, sym: bool = True, dtype: DType | None = None) -> Tensor:
    """Return Nuttall's sum of four cosines (https://doi.org/10.1109/TASSP.1981.1163506).

    >>> gt.signal.windows.nuttall(5)[1:4]
    tensor([0.22698243, 0.99999994, 0.2269824 ], dtype=float32)
    """
    coefficients = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=coefficients, sym=sym, dtype=dtype)


@window
def bartlett(M: int, *, sym: bool = True, dtype: DType | None = None) -> Tensor:
    """Return a triangle: 1 - |2 n / (M - 1) - 1|.

    >>> gt.signal.windows.bartlett(5)
    tensor([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    if M == 1:
        return gt.ones(1, dtype=dtype)
    return 1 - _steps(M, -1, 2 / _parts(M, sym), dtype).abs()


@window
def cosine(M: int, *, sym: bool = True, dtype: DType | None = None) -> Tensor:
    """Return half a period of a sine: sin(pi (n + 1/2) / M).

    >>> gt.signal.windows.cosine(3)
    tensor([0.5       , 1.        , 0.50000006], dtype=float32)
    """
    step = math.pi / (M if sym or M == 1 else M + 1) if M else 0
    return gt.sin(_steps(M, step / 2, step, dtype))


@window
def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: DType | None = None,
) -> Tensor:
    """Return exp(-|n - center| / tau).

    Args:
        M: the length.
        center: the position of the maximum; must be None for symmetric windows: the middle.
        tau: the distance over which the window falls to 1 / e.
        sym: whether the window is symmetric, else periodic.
        dtype: float32, the default, or float64.

    >>> gt.signal.windows.exponential(3)
    tensor([0.36787945, 1.        , 0.36787945], dtype=float32)
    """
    if tau <= 0:
        raise ValueError(f"exponential: tau is {tau}, expected more than 0")
    if sym and center is not None:
        raise ValueError("exponential: center needs sym=False, as symmetric windows are centered")
    middle = _middle(M, sym) if center is None else center
    return gt.exp(-_steps(M, -middle / tau, 1 / tau, dtype).abs())


@window
def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: DType | None = None) -> Tensor:
    """Return a Gaussian: exp(-(n - center)^2 / (2 std^2)).

    >>> gt.signal.windows.gaussian(3)
    tensor([0.60653067, 1.        , 0.60653067], dtype=float32)
    """
    if std <= 0:
        raise ValueError(f"gaussian: std is {std}, expected more than 0")
    step = 1 / (std * math.sqrt(2))
    return gt.exp(-_steps(M, -_middle(M, sym) * step, step, dtype).square())


def _middle(M: int, sym: bool) -> float:
    return (M - 1 if sym or M == 1 else M) / 2


@window
def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: DType | None = None) -> Tensor:
    """Return I0(beta sqrt(1 - (2 n / (M - 1) - 1)^2)) / I0(beta), with the Bessel function I0.

    >>> gt.signal.windows.kaiser(3, beta=0.0)
    tensor([1., 1., 1.], dtype=float32)
    """
    if beta < 0:
        raise ValueError(f"kaiser: beta is {beta}, expected 0 or more")
    if M == 1:
        return gt.ones(1, dtype=dtype)
    place = gt.clamp(_steps(M, -beta, 2 * beta / _parts(M, sym), dtype), max=beta)
    return gt.i0((beta * beta - place.square()).sqrt()) / gt.i0(gt.full_like(place, beta))
