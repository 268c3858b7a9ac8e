"""Max unpooling."""

from __future__ import annotations

import math
from typing import Any

from gt._gt import Tensor, arange_beside, primitives
from gt.ops.annotations import Size
from gt.ops.registry import function
from gt.ops.sizes import filled
from gt.ops.sliding import check_spatial, per_axis, stride_of

NN = "gt.nn.functional"


@function(namespace=NN)
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Size | None = None,
) -> Tensor:
    """Return values at the indices where `max_pool1d` found them, with zeros elsewhere.

    Args:
        input: the values that the pooling returned.
        indices: the indices that the pooling returned.
        kernel_size: as for the pooling.
        stride: as for the pooling.
        padding: as for the pooling.
        output_size: the shape before the pooling, or its last axis; by default (length - 1) *
            stride + kernel_size - 2 * padding.

    >>> gt.nn.functional.max_unpool1d(gt.tensor([[4.0, 3.0]]), gt.tensor([[1, 3]]).long(), 2)
    tensor([[0., 4., 0., 3.]], dtype=float32)
    """
    return _unpool("max_unpool1d", 1, input, indices, kernel_size, stride, padding, output_size)


@function(namespace=NN)
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Size | None = None,
) -> Tensor:
    """Return values at the indices of `max_pool2d`; parameters as for `max_unpool1d`.

    >>> gt.nn.functional.max_unpool2d(gt.tensor([[[6.0]]]), gt.tensor([[[2]]]).long(), 2)
    tensor([[[0., 0.],
             [6., 0.]]], dtype=float32)
    """
    return _unpool("max_unpool2d", 2, input, indices, kernel_size, stride, padding, output_size)


@function(namespace=NN)
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    output_size: Size | None = None,
) -> Tensor:
    """Return values at the indices of `max_pool3d`; parameters as for `max_unpool1d`.

    >>> gt.nn.functional.max_unpool3d(gt.ones(1, 1, 1, 1), gt.zeros(1, 1, 1, 1).long(), 2).sum()
    tensor(1., dtype=float32)
    """
    return _unpool("max_unpool3d", 3, input, indices, kernel_size, stride, padding, output_size)


def _unpool(
    name: str,
    axes: int,
    input: Tensor,
    indices: Tensor,
    kernel_size: Any,
    stride: Any,
    padding: Any,
    output_size: Any,
) -> Tensor:
    """Write values at indices in the flattened spatial axes; the last of equal indices wins."""
    check_spatial(name, input, axes)
    if indices.shape != input.shape:
        raise ValueError(
            f"{name}: indices have shape {indices.shape}, expected that of input, {input.shape}"
        )
    kernel = per_axis(name, "kernel_size", kernel_size, axes)
    stride = stride_of(name, stride, kernel)
    padding = per_axis(name, "padding", padding, axes)
    each = zip(input.shape[-axes:], kernel, stride, padding, strict=True)
    size = [(length - 1) * s + k - 2 * p for length, k, s, p in each]
    if output_size is not None:
        size = _checked_size(name, axes, output_size, size, stride)
    planes, space = math.prod(input.shape[:-axes]), math.prod(size)
    plane = arange_beside(input, planes).unsqueeze(-1) * space
    at = (
        primitives.wrap_index(indices, space).reshape(planes, math.prod(input.shape[-axes:]))
        + plane
    )
    empty = filled(input, [planes * space], 0)
    full = empty.index_copy(0, at.reshape(-1), input.reshape(-1))
    return full.reshape(*input.shape[:-axes], *size)


def _checked_size(name: str, axes: int, given: Any, usual: list[int], stride: Any) -> list[int]:
    """Return the lengths of the spatial axes from `output_size`."""
    size = list(given) if isinstance(given, tuple | list) else [given]
    size = size[2:] if len(size) == axes + 2 else size
    if len(size) != axes:
        raise ValueError(f"{name}: output_size is {given}, expected {axes} or {axes + 2} numbers")
    if not all(abs(n - u) < s for n, u, s in zip(size, usual, stride, strict=True)):
        raise ValueError(
            f"{name}: output_size is {given}, expected less than {stride} away from {usual}"
        )
    return size
