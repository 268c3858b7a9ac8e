"""Softmax and its variants."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module

#: The number of stack frames from the function that warns to the program's call of the module.
_STACK = 5


class _AlongAxis(Module):
    """An activation along one axis; if None, the shape determines it, with a warning."""

    def __init__(self, dim: int | None = None):
        if dim is not None and (not isinstance(dim, int) or isinstance(dim, bool)):
            raise TypeError(f"dim must be an int or None, got {type(dim)}")
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"dim={self.dim}"


class Softmax(_AlongAxis):
    """exp(x) divided by its sum along an axis.

    >>> gt.nn.Softmax(dim=1)(gt.zeros(1, 2))
    tensor([[0.5, 0.5]], dtype=float32)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.softmax(input, self.dim, _stacklevel=_STACK)


class LogSoftmax(_AlongAxis):
    """The logarithm of softmax along an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.log_softmax(input, self.dim, _stacklevel=_STACK)


class Softmin(_AlongAxis):
    """The softmax of -x along an axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.softmin(input, self.dim, _stacklevel=_STACK)


class Softmax2d(Module):
    """Softmax over the channels, axis -3, of images with or without a batch axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=_STACK)
