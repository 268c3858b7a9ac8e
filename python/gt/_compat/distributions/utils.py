"""Shared utilities: broadcasting, log-odds, lazy properties, triangular matrices as vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import gt
from gt._gt import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "euler_constant",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

#: The Euler-Mascheroni constant.
euler_constant = 0.57721566490153286060

Number = (bool, int, float, complex)


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Broadcast tensors and numbers against each other.

    A number takes the dtype of the first tensor, or the default dtype if all values are numbers.

    >>> gt.distributions.utils.broadcast_all(1.0, gt.zeros(2))[0]
    tensor([1., 1.], dtype=float32)
    """
    for value in values:
        if not isinstance(value, (Tensor, *Number)):
            kind = type(value).__name__
            raise ValueError(f"Input arguments must all be numbers or tensors, not {kind}")
    tensors = [value for value in values if isinstance(value, Tensor)]
    dtype = tensors[0].dtype if tensors else gt.get_default_dtype()
    parts = [v if isinstance(v, Tensor) else gt.tensor(v, dtype=dtype) for v in values]
    shapes = [part.shape for part in parts]
    try:
        shape = gt.broadcast_shapes(*shapes)
    except ValueError:
        given = " and ".join(str(tuple(shape)) for shape in shapes)
        raise ValueError(
            f"the parameters have shapes {given}, which do not broadcast\n"
            "  hint: each pair of axes, counted from the right, must be equal or have a 1"
        ) from None
    return tuple(part if part.shape == shape else part.expand(shape) for part in parts)


def sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """Sum over the last `dim` axes."""
    return value.sum(tuple(range(-dim, 0))) if dim else value


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Convert log-odds (binary) or logarithms of weights along the last axis to probabilities.

    >>> gt.distributions.utils.logits_to_probs(gt.zeros(2))
    tensor([0.5, 0.5], dtype=float32)
    """
    return gt.sigmoid(logits) if is_binary else gt.softmax(logits, -1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Clamp probabilities to [eps, 1 - eps], with eps the machine epsilon of their dtype."""
    eps = gt.finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Convert probabilities to log-odds (binary) or logarithms, clamped by `clamp_probs` first.

    >>> gt.distributions.utils.probs_to_logits(gt.tensor([0.5]), is_binary=True)
    tensor([0.], dtype=float32)
    """
    probs = clamp_probs(probs)
    return probs.log() - (-probs).log1p() if is_binary else probs.log()


class lazy_property:
    """A property that is computed when it is first read, and then cached on the instance.

    It is computed with gradients even under `gt.no_grad()`, because later reads may need them.
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with gt.enable_grad():
            value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """Flatten the lower triangles of matrices (..., D, D) to vectors, row by row.

    `diag` is the offset of the last diagonal to include, as in `gt.tril`.
    """
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    places = [row * n + column for row in range(n) for column in range(n) if column <= row + diag]
    return mat.flatten(-2)[..., gt.tensor(places, dtype=gt.int64)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Fill the lower triangles of matrices of zeros from vectors, row by row.

    The inverse of `tril_matrix_to_vec`; `diag` must be 0 or less.
    """
    length = vec.shape[-1]
    # n + diag rows have 1, 2, ..., n + diag elements: (n + diag) (n + diag + 1) / 2 in all.
    rows = (math.isqrt(8 * length + 1) - 1) // 2
    n = rows - diag
    if rows * (rows + 1) // 2 != length:
        raise ValueError(
            f"The size of last dimension is {length} which cannot be expressed as "
            "the lower triangular part of a square D x D matrix."
        )
    # Each matrix element is the index of a vector element, or of the zero padded at its end.
    places, taken = [], 0
    for row in range(n):
        for column in range(n):
            below = column <= row + diag
            places.append(taken if below else length)
            taken += below
    padded = gt.nn.functional.pad(vec, [0, 1])
    return padded[..., gt.tensor(places, dtype=gt.int64)].reshape((*vec.shape[:-1], n, n))
