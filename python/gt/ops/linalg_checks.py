"""Checks of the operands of linear algebra, and the error for matrices without a result."""

from __future__ import annotations

import gt
from gt import _gt
from gt._gt import Tensor
from gt.ops.matrices import need_square
from gt.ops.sizes import need_axes


class LinAlgError(RuntimeError):
    """A matrix has no factorisation, inverse or solution, for example because it is singular."""

    __module__ = "gt.linalg"


def need_matrices(name: str, A: Tensor, square: bool = False) -> None:
    """Raise unless a tensor holds matrices of complex numbers or of floats of 32 bits or more."""
    dtype = A.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise TypeError(
            f"{name}: expected floats or complex numbers, not {dtype.name}\n  hint: x.float()"
        )
    if dtype.is_floating_point and dtype.itemsize < 4:
        raise TypeError(
            f"{name}: {dtype.name} is not precise enough, expected float32 or wider\n"
            "  hint: x.float()"
        )
    need_axes(name, A, 2)
    if square:
        need_square(name, A)


def need_same_dtype(name: str, A: Tensor, B: Tensor) -> None:
    """Raise unless two tensors have the same dtype."""
    if A.dtype != B.dtype:
        raise TypeError(f"{name}: dtypes {A.dtype.name} and {B.dtype.name} differ, expected one")


def raise_if_failed(name: str, info: Tensor, reason: str, hint: str) -> None:
    """Raise if `info` is not 0 for some matrix; waits for the values of `info`.

    In `reason`, `{code}` stands for the value of `info`.
    """
    info = _gt.whole_batch(info)
    if not info.any().item():
        return
    codes = info.reshape(-1).tolist()
    first = next(place for place, code in enumerate(codes) if code)
    which = f"matrix {first} of the batch: " if info.ndim else ""
    raise LinAlgError(f"{name}: {which}{reason.format(code=codes[first])}\n  hint: {hint}")


def one_batch(*given: Tensor) -> list[Tensor]:
    """Expand matrices to their common batch axes."""
    batch = gt.broadcast_shapes(*(x.shape[:-2] for x in given))
    return [x.expand((*batch, *x.shape[-2:])) for x in given]


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Return whether a right-hand side holds vectors, by PyTorch's rule."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
