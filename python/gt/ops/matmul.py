"""Products of matrices and vectors."""

from __future__ import annotations

import gt
from gt._gt import Tensor
from gt.ops.registry import function, operation


@function(autocast="lower")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Multiply matrices, the last two axes; axes before them broadcast, and one axis is a vector.

    >>> gt.matmul(gt.ones(2, 3), gt.ones(3))
    tensor([3., 3.], dtype=float32)
    """
    return input @ other


@operation(autocast="lower", aliases=("spmm",))
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Multiply two matrices.

    >>> gt.mm(gt.ones(1, 2), gt.ones(2, 1))
    tensor([[2.]], dtype=float32)
    """
    _check_axes("mm", 2, input, mat2)
    return input @ mat2


@operation(autocast="lower")
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """Multiply two batches of equally many matrices.

    >>> gt.bmm(gt.ones(2, 1, 3), gt.ones(2, 3, 1)).shape
    (2, 1, 1)
    """
    _check_axes("bmm", 3, input, mat2)
    _check_batches("bmm", input, mat2)
    return input @ mat2


@operation(autocast="lower")
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """Multiply a matrix and a vector.

    >>> gt.mv(gt.ones(2, 3), gt.ones(3))
    tensor([3., 3.], dtype=float32)
    """
    _check_axes("mv", 2, input)
    _check_axes("mv", 1, vec)
    return input @ vec


@operation(autocast="widest")
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Multiply two vectors: the sum of `input[i] * tensor[i]`.

    >>> gt.dot(gt.tensor([1.0, 2.0]), gt.tensor([3.0, 4.0]))
    tensor(11., dtype=float32)
    """
    _check_axes("dot", 1, input, tensor)
    return input @ tensor


@operation(autocast="widest")
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """Multiply two vectors, the first conjugated; for real numbers the same as `dot`.

    >>> gt.vdot(gt.tensor([1.0, 2.0]), gt.tensor([3.0, 4.0]))
    tensor(11., dtype=float32)
    """
    _check_axes("vdot", 1, input, other)
    return gt.conj(input) @ other


@operation(autocast="inside")
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Multiply each row of one tensor with each row of the other; a number scales.

    >>> gt.inner(gt.tensor([[1.0, 2.0], [3.0, 4.0]]), gt.tensor([10.0, 1.0]))
    tensor([12., 34.], dtype=float32)
    """
    if input.ndim == 0 or other.ndim == 0:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ValueError(
            f"inner: the last axes of shapes {input.shape} and {other.shape} must be equally long"
        )
    return gt.tensordot(input, other, ([-1], [-1]))


@operation(aliases=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Multiply each element of one vector with each of another: `out[i, j] = input[i] * vec2[j]`.

    >>> gt.outer(gt.tensor([1.0, 2.0]), gt.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]], dtype=float32)
    """
    _check_axes("outer", 1, input, vec2)
    return input.unsqueeze(1) * vec2


@function(namespace="gt.nn.functional", autocast="widest")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input1 @ weight[k] @ input2` + bias for the vectors along the last axes and each k.

    >>> gt.nn.functional.bilinear(gt.ones(1, 2), gt.ones(1, 4), gt.ones(3, 2, 4))
    tensor([[8., 8., 8.]], dtype=float32)
    """
    if input1.shape[:-1] != input2.shape[:-1]:
        raise ValueError(
            f"bilinear: shapes {input1.shape} and {input2.shape} may differ only in the last axis"
        )
    out = gt.einsum("...i,kij,...j->...k", input1, weight, input2)
    return out if bias is None else out + bias


def _check_axes(name: str, axes: int, *tensors: Tensor) -> None:
    hint = "\n  hint: matmul takes other shapes, too" if name in ("mm", "bmm", "mv") else ""
    for given in tensors:
        if given.ndim != axes:
            expected = "1 axis" if axes == 1 else f"{axes} axes"
            raise ValueError(
                f"{name}: a tensor of shape {given.shape} is given, expected {expected}{hint}"
            )


def _check_batches(name: str, one: Tensor, other: Tensor) -> None:
    if one.shape[0] != other.shape[0]:
        raise ValueError(
            f"{name}: batches of {one.shape[0]} and {other.shape[0]} matrices, expected equal sizes"
        )
