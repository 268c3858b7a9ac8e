"""Softmax and its relatives."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module

#: How far above the function that warns a program's call of the module stands.
_STACK = 5


class _AlongAxis(Module):
    """An activation along one axis; without one it is guessed from the shape, with a warning."""

    def __init__(self, dim: int | None = None):
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """Say the axis."""
        return f"dim={self.dim}"


class Softmax(_AlongAxis):
    """exp(x) over its sum along an axis.

    >>> gt.nn.Softmax(dim=1)(gt.zeros(1, 2))
    tensor([[0.5, 0.5]], dtype=float32)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.softmax(input, self.dim, _stacklevel=_STACK)


class LogSoftmax(_AlongAxis):
    """The logarithm of softmax along an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.log_softmax(input, self.dim, _stacklevel=_STACK)


class Softmin(_AlongAxis):
    """The softmax of -x along an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.softmin(input, self.dim, _stacklevel=_STACK)


class Softmax2d(Module):
    """Softmax over the channels of (batch, channels, height, width), or that without batch."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=_STACK)
