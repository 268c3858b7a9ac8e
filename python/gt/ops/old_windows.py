"""Windows under PyTorch's older names, which are periodic by default."""

from __future__ import annotations

import functools
from collections.abc import Callable

import gt
from gt._gt import Tensor, parse_dtype
from gt.ops import windows
from gt.ops.annotations import DType
from gt.ops.create import creation
from gt.ops.registry import function


def window(shape: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Register a window function; 16-bit floats are computed in float32."""

    @functools.wraps(shape)
    def checked(
        window_length: int, *args: object, dtype: DType | None = None, **kwargs: object
    ) -> Tensor:
        wanted = gt.get_default_dtype() if dtype is None else parse_dtype(dtype)
        if not wanted.is_floating_point:
            raise TypeError(f"{shape.__name__}: dtype is {wanted.name}, expected a float dtype")
        wide = gt.float64 if wanted == gt.float64 else gt.float32
        return shape(window_length, *args, dtype=wide, **kwargs)._cast(wanted)

    return function(creation(checked))


@window
def hann_window(window_length: int, periodic: bool = True, *, dtype: DType | None = None) -> Tensor:
    """Return (1 - cos(2 pi n / N)) / 2; N is the length, minus 1 if not periodic.

    >>> gt.hann_window(4)
    tensor([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return windows.hann(window_length, sym=not periodic, dtype=dtype)


@window
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return alpha - beta cos(2 pi n / N); N is the length, minus 1 if not periodic.

    >>> gt.hamming_window(4)
    tensor([0.08000001, 0.54      , 1.        , 0.54      ], dtype=float32)
    """
    return windows.general_cosine(window_length, a=[alpha, beta], sym=not periodic, dtype=dtype)


@window
def bartlett_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None
) -> Tensor:
    """Return 1 - |2 n / N - 1|; N is the length, minus 1 if not periodic.

    >>> gt.bartlett_window(4)
    tensor([0. , 0.5, 1. , 0.5], dtype=float32)
    """
    return windows.bartlett(window_length, sym=not periodic, dtype=dtype)


@window
def blackman_window(
    window_length: int, periodic: bool = True, *, dtype: DType | None = None
) -> Tensor:
    """Return 0.42 - 0.5 cos(z) + 0.08 cos(2 z) for z = 2 pi n / N, N as for `hann_window`.

    >>> gt.blackman_window(4)[1:]
    tensor([0.34000003, 0.99999994, 0.33999997], dtype=float32)
    """
    return windows.blackman(window_length, sym=not periodic, dtype=dtype)


@window
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: DType | None = None
) -> Tensor:
    """Return I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta), N as for `hann_window`.

    >>> gt.kaiser_window(3, beta=0.0)
    tensor([1., 1., 1.], dtype=float32)
    """
    return windows.kaiser(window_length, beta=beta, sym=not periodic, dtype=dtype)
