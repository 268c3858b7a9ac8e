"""Softmax and its variants."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F

from .forwarding import Forwarding, options
from .module import Module

#: The number of stack frames from the function that warns to the program's call of the module.
_STACK = 6


@options
class _AlongAxis(Forwarding):
    """An activation along one axis; if None, the shape determines it, with a warning."""

    dim: int | None = None

    def __post_init__(self) -> None:
        if self.dim is not None and (not isinstance(self.dim, int) or isinstance(self.dim, bool)):
            raise TypeError(f"dim must be an int or None, got {type(self.dim)}")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return self._call_function(input, _stacklevel=_STACK)


class Softmax(_AlongAxis, function=F.softmax):
    """exp(x) divided by its sum along an axis.

    >>> gt.nn.Softmax(dim=1)(gt.zeros(1, 2))
    tensor([[0.5, 0.5]], dtype=float32)
    """


class LogSoftmax(_AlongAxis, function=F.log_softmax):
    """The logarithm of softmax along an axis."""


class Softmin(_AlongAxis, function=F.softmin):
    """The softmax of -x along an axis."""


class Softmax2d(Module):
    """Softmax over the channels, axis -3, of images with or without a batch axis."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3, _stacklevel=_STACK)
