"""The size of a tensor and of its elements, and copies."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt.ops.registry import extend_tensor, operation
from gt.ops.sizes import method


@method(aliases=("ndimension",), autocast="inside")
def dim(input: Tensor) -> int:
    """Return the number of axes.

    >>> gt.ones(2, 3).dim()
    2
    """
    return input.ndim


@method
def nelement(input: Tensor) -> int:
    """Return the number of elements: the same as `numel`.

    >>> gt.ones(2, 3).nelement()
    6
    """
    return input.numel()


@method
def element_size(input: Tensor) -> int:
    """Return the size of an element in bytes.

    >>> gt.ones(2).element_size()
    4
    """
    return input.dtype.itemsize


def _nbytes(input: Tensor) -> int:
    """Return the size of all elements in bytes."""
    return input.numel() * input.dtype.itemsize


extend_tensor(
    itemsize=property(element_size, doc="The size of an element in bytes."),
    nbytes=property(_nbytes, doc="The size of all elements in bytes."),
)

_clone = Tensor.clone


@operation
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return a copy; gradients flow back to the original.

    >>> gt.clone(gt.ones(2))
    tensor([1., 1.], dtype=float32)
    """
    return _clone(input)
