"""Norms of vectors and matrices, following `torch.linalg`."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor, parse_dtype, primitives
from gt.ops.annotations import Dims, DType
from gt.ops.registry import function
from gt.ops.sizes import axis_of, need_axes

_INF = math.inf


@function(namespace="gt.linalg")
def vector_norm(
    x: Tensor,
    ord: float = 2,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return the norm of vectors: `sum(|x| ** ord) ** (1 / ord)`.

    For `ord` inf it is the largest |x|, for -inf the smallest, for 0 the number of nonzero values.

    Args:
        x: a tensor of floats or complex numbers.
        ord: the order of the norm; 2 is the Euclidean norm.
        dim: the axis or axes of a vector; all by default.
        keepdim: whether these axes are kept with length 1.
        dtype: the dtype that the values are cast to first.

    >>> gt.linalg.vector_norm(gt.tensor([3.0, 4.0]))
    tensor(5., dtype=float32)
    """
    if not isinstance(ord, int | float):
        raise TypeError(f"vector_norm: ord must be a number, not {ord!r}")
    x = _floats("vector_norm", x, dtype)
    x = x.abs() if x.dtype.is_complex else x
    wide = x.float() if x.dtype.itemsize == 2 else x
    return _length(wide, ord, dim, keepdim)._cast(x.dtype)


def _floats(name: str, x: Tensor, dtype: DType | None) -> Tensor:
    """Cast to a dtype that holds all of a tensor's values; raise for integers."""
    wanted = x.dtype if dtype is None else parse_dtype(dtype)
    for given in (x.dtype, wanted):
        if not (given.is_floating_point or given.is_complex):
            raise TypeError(f"{name}: expected floats, not {given.name}\n  hint: x.float()")
    if gt.promote_types(x.dtype, wanted) != wanted:
        raise TypeError(f"{name}: {wanted.name} cannot hold the values of {x.dtype.name}")
    return x._cast(wanted)


def _length(x: Tensor, order: float, dim: Dims, keepdim: bool) -> Tensor:
    size = x.abs()
    if math.isinf(order):
        return (primitives.amax if order > 0 else primitives.amin)(size, dim, keepdim)
    if order == 0:
        return primitives.where(x.isnan(), 1.0, primitives.sign(size)).sum(dim, keepdim)
    if order == 1:
        return size.sum(dim, keepdim)
    terms = x * x if order == 2 else power(size, order)
    total = terms.sum(dim, keepdim)
    if order < 0 and x.numel() == 0 < total.numel():
        raise ValueError(f"vector_norm: the norm of order {order} of no values is undefined")
    return power(total, 1 / order)


def power(x: Tensor, exponent: float) -> Tensor:
    """Return `x ** exponent` for x >= 0, with gradient 0 where x is 0."""
    zero = x == 0
    some = primitives.where(zero, 1.0, x)
    some = primitives.sqrt(some) if exponent == 0.5 else primitives.pow(some, exponent)
    return primitives.where(zero, 0.0 if exponent > 0 else _INF, some)


@function(namespace="gt.linalg")
def matrix_norm(
    A: Tensor,
    ord: float | str = "fro",
    dim: Dims = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return a norm of matrices.

    Args:
        A: a tensor of floats or complex numbers.
        ord: "fro" for the root of the sum of all squares; inf or -inf for the largest or smallest
            sum of the absolute values of a row, 1 or -1 of a column; "nuc" for the sum of the
            singular values, 2 or -2 for the largest or smallest of them.
        dim: the two axes of a matrix.
        keepdim: whether these axes are kept with length 1.
        dtype: the dtype that the values are cast to first.

    >>> gt.linalg.matrix_norm(gt.tensor([[1.0, -2.0], [3.0, 4.0]]), 1)
    tensor(6., dtype=float32)
    """
    need_axes("matrix_norm", A, 2)
    A = _floats("matrix_norm", A, dtype)
    rows, columns = _two("matrix_norm", dim, A.ndim)
    if ord == "fro":
        return vector_norm(A, 2, (rows, columns), keepdim)
    if ord in ("nuc", 2, -2):
        return _of_singular_values(A, ord, rows, columns, keepdim)
    if ord not in (1, -1, _INF, -_INF):
        raise ValueError(
            f"matrix_norm: ord is {ord!r}, expected 'fro', 'nuc', inf, -inf, 1, -1, 2 or -2"
        )
    along, over = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = vector_norm(A, 1, along, True)
    most = primitives.amax if sums.shape[over] else primitives.sum
    found = (most if ord > 0 else primitives.amin)(sums, over, True)
    return found if keepdim else found.squeeze((rows, columns))


def _of_singular_values(A: Tensor, ord: Any, rows: int, columns: int, keepdim: bool) -> Tensor:
    values = gt.linalg.svdvals(A.movedim((rows, columns), (-2, -1)))
    if ord == "nuc" or (ord == 2 and values.shape[-1] == 0):
        found = values.sum(-1)
    else:
        found = (values.amax if ord > 0 else values.amin)(-1)
    if not keepdim:
        return found
    return found.unsqueeze(min(rows, columns)).unsqueeze(max(rows, columns))


def _two(name: str, dim: Any, ndim: int) -> tuple[int, int]:
    """Return two different axes, counted from the front."""
    if not isinstance(dim, tuple | list) or len(dim) != 2:
        raise ValueError(f"{name}: dim must be two axes, not {dim!r}")
    first, second = (axis_of(name, axis, ndim) for axis in dim)
    if first == second:
        raise ValueError(f"{name}: dim {dim} names an axis twice")
    return first, second


@function(namespace="gt.linalg")
def norm(
    A: Tensor,
    ord: float | str | None = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Return a norm of vectors or matrices: by default that of order 2 of all values.

    With `ord`, the one axis of a tensor or in `dim` is a vector; two axes are a matrix.

    >>> gt.linalg.norm(gt.tensor([3.0, 4.0]), 1)
    tensor(7., dtype=float32)
    """
    count = A.ndim if dim is None else 1 if isinstance(dim, int) else len(dim)
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype)
    if count not in (1, 2):
        raise ValueError(f"norm: ord {ord!r} needs one or two axes, not {count}")
    if count == 2:
        return matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    if isinstance(ord, str):
        raise ValueError(f"norm: ord {ord!r} needs two axes, not one")
    return vector_norm(A, ord, dim, keepdim, dtype=dtype)
