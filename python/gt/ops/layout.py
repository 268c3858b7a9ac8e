"""Where values would be in memory: a tensor is as if in row-major order, without gaps."""

from __future__ import annotations

import math
from typing import Any

from gt._gt import Tensor
from gt.ops.registry import operation
from gt.ops.sizes import axis_of, method


@method
def is_contiguous(input: Tensor, memory_format: Any = None) -> bool:
    """Say whether the values are in row-major order, which they always are.

    >>> gt.ones(2, 3).t().is_contiguous()
    True
    """
    return True


@method
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """Give the tensor itself: its values are in row-major order.

    >>> gt.ones(2).contiguous()
    tensor([1., 1.], dtype=float32)
    """
    return input


@method
def stride(input: Tensor, dim: int | None = None) -> tuple[int, ...] | int:
    """Give how many values apart the elements along each axis, or one, are in row-major order.

    >>> gt.ones(2, 3).stride()
    (3, 1)
    """
    strides = [math.prod(max(n, 1) for n in input.shape[axis + 1 :]) for axis in range(input.ndim)]
    return tuple(strides) if dim is None else strides[axis_of("stride", dim, input.ndim)]


@method
def storage_offset(input: Tensor) -> int:
    """Give the place of the first value: 0.

    >>> gt.ones(2)[1:].storage_offset()
    0
    """
    return 0


@method(aliases=("ndimension",))
def dim(input: Tensor) -> int:
    """Count the axes.

    >>> gt.ones(2, 3).dim()
    2
    """
    return input.ndim


@method
def nelement(input: Tensor) -> int:
    """Count the elements: the same as `numel`.

    >>> gt.ones(2, 3).nelement()
    6
    """
    return input.numel()


@method
def element_size(input: Tensor) -> int:
    """Give the size of an element in bytes.

    >>> gt.ones(2).element_size()
    4
    """
    return input.dtype.itemsize


Tensor.itemsize = property(element_size, doc="The size of an element in bytes.")
Tensor.nbytes = property(
    lambda self: self.numel() * self.dtype.itemsize, doc="The size of all elements in bytes."
)

_clone = Tensor.clone


@operation
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give a tensor of its own with the same values; gradients flow back to this one.

    >>> gt.clone(gt.ones(2))
    tensor([1., 1.], dtype=float32)
    """
    return _clone(input)
