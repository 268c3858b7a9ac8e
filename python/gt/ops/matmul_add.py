"""Products of matrices and vectors, added to a tensor: `beta * input + alpha * product`.

The input broadcasts to the product. With `beta` 0 it is ignored, even where it is NaN. For
integers, `beta` and `alpha` are truncated.
"""

from __future__ import annotations

import gt
from gt._gt import Tensor, primitives
from gt.ops.annotations import Number
from gt.ops.matmul import _check_axes, _check_batches
from gt.ops.registry import operation


@operation(in_place=True, autocast="lower")
def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return `beta * input + alpha * (mat1 @ mat2)`.

    >>> gt.addmm(gt.ones(2), gt.ones(1, 3), gt.ones(3, 2), alpha=2)
    tensor([[7., 7.]], dtype=float32)
    """
    _check_axes("addmm", 2, mat1, mat2)
    return _added(input, mat1 @ mat2, beta, alpha)


@operation(in_place=True, autocast="lower")
def addmv(
    input: Tensor, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return `beta * input + alpha * (mat @ vec)`.

    >>> gt.addmv(gt.ones(2), gt.ones(2, 3), gt.ones(3), beta=10)
    tensor([13., 13.], dtype=float32)
    """
    _check_axes("addmv", 2, mat)
    _check_axes("addmv", 1, vec)
    return _added(input, mat @ vec, beta, alpha)


@operation(in_place=True, autocast="lower")
def addr(
    input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return `beta * input + alpha * outer(vec1, vec2)`.

    >>> gt.addr(gt.ones(2, 2), gt.tensor([1.0, 2.0]), gt.tensor([3.0, 4.0]))
    tensor([[4., 5.],
            [7., 9.]], dtype=float32)
    """
    _check_axes("addr", 1, vec1, vec2)
    if not _has_fractions(gt.result_type(vec1, vec2)) and _are_floats(beta, alpha):
        raise TypeError(
            f"addr: beta and alpha must be ints for integers, not {beta!r} and {alpha!r}"
        )
    return _added(input, vec1.unsqueeze(1) * vec2, beta, alpha)


@operation(in_place=True, autocast="lower")
def baddbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return `beta * input + alpha * (batch1 @ batch2)` for batches of equally many matrices.

    >>> gt.baddbmm(gt.ones(1, 2), gt.ones(3, 1, 4), gt.ones(3, 4, 2)).shape
    (3, 1, 2)
    """
    _check_axes("baddbmm", 3, batch1, batch2)
    _check_batches("baddbmm", batch1, batch2)
    return _added(input, batch1 @ batch2, beta, alpha)


@operation(in_place=True, autocast="lower")
def addbmm(
    input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
) -> Tensor:
    """Return `beta * input + alpha * sum(batch1[i] @ batch2[i])`.

    The sum over the batch is one product: of all matrices side by side with all below each other.

    >>> gt.addbmm(gt.ones(1, 2), gt.ones(3, 1, 4), gt.ones(3, 4, 2))
    tensor([[13., 13.]], dtype=float32)
    """
    _check_axes("addbmm", 3, batch1, batch2)
    _check_batches("addbmm", batch1, batch2)
    (batch, rows, inner), (_, length, columns) = batch1.shape, batch2.shape
    if inner != length:
        raise ValueError(f"addbmm: {inner} columns of batch1 do not fit {length} rows of batch2")
    beside = batch1.permute(1, 0, 2).reshape(rows, batch * inner)
    return _added(input, beside @ batch2.reshape(batch * inner, columns), beta, alpha)


def _added(input: Tensor, product: Tensor, beta: Number, alpha: Number) -> Tensor:
    """Return `beta * input + alpha * product`, which has the product's shape."""
    if not _has_fractions(product.dtype) and product.dtype != gt.bool:
        beta, alpha = _whole(beta), _whole(alpha)
    if product.dtype.is_floating_point and product.dtype.itemsize == 2:
        wide = _added(input.float(), product.float(), beta, alpha)
        return wide._cast(gt.result_type(input, product))
    added = input.expand(product.shape)
    scaled = _times(product, alpha)
    return scaled if beta == 0 else primitives.add(_times(added, beta), scaled)


def _whole(factor: Number) -> int:
    """Return a factor of integers without its fraction."""
    if isinstance(factor, complex):
        raise TypeError(f"beta and alpha must be real for matrices of integers, not {factor}")
    return int(factor)


def _has_fractions(dtype: gt.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _are_floats(*numbers: Number) -> bool:
    return any(isinstance(number, float) for number in numbers)


def _times(values: Tensor, factor: Number) -> Tensor:
    if values.dtype == gt.bool:
        factor = factor != 0
    return values if factor == 1 else values * factor
