"""Padding of the last axes."""

from __future__ import annotations

from collections.abc import Sequence

from gt._gt import Tensor
from gt.nn import functional as F

from .forwarding import Forwarding, options
from .sizes import per_axis


@options
class _PadNd(Forwarding):
    """Padding of the last `axes` axes in a mode."""

    padding: int | Sequence[int]

    axes = 0
    mode = "constant"

    def __post_init__(self) -> None:
        self.padding = per_axis(self.padding, 2 * self.axes)

    def forward(self, input: Tensor) -> Tensor:
        """Pad an input."""
        return F.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Pad (batch, channels, axes...) or (channels, axes...)."""
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise ValueError(
                f"expected {self.axes + 1}D or {self.axes + 2}D input (got {input.ndim}D input)"
            )
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Padding of the last axis with the values from its other end.

    Args:
        padding: the length before and after: one number, or (before, after).

    >>> gt.nn.CircularPad1d(1)(gt.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 1., 2., 3., 1.]], dtype=float32)
    """

    axes = 1


class CircularPad2d(_CircularPadNd):
    """Padding of the last two axes with values from their other ends.

    `padding` is (left, right, top, bottom).
    """

    axes = 2


class CircularPad3d(_CircularPadNd):
    """Padding of the last three axes with values from their other ends.

    `padding` is (left, right, top, bottom, front, back).
    """

    axes = 3


class _ReflectionPadNd(_PadNd):
    mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Padding of the last axis with its mirror image, without repeating the value at the end.

    Args:
        padding: the length before and after: one number, or (before, after).

    >>> gt.nn.ReflectionPad1d(1)(gt.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 1., 2., 3., 2.]], dtype=float32)
    """

    axes = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Padding of the last two axes with their mirror images.

    `padding` is (left, right, top, bottom).
    """

    axes = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Padding of the last three axes with their mirror images.

    `padding` is (left, right, top, bottom, front, back).
    """

    axes = 3


class _ReplicationPadNd(_PadNd):
    mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Padding of the last axis with the values at its ends.

    Args:
        padding: the length before and after: one number, or (before, after).

    >>> gt.nn.ReplicationPad1d((2, 0))(gt.tensor([[1.0, 2.0]]))
    tensor([[1., 1., 1., 2.]], dtype=float32)
    """

    axes = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Padding of the last two axes with the values at their ends.

    `padding` is (left, right, top, bottom).
    """

    axes = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Padding of the last three axes with the values at their ends.

    `padding` is (left, right, top, bottom, front, back).
    """

    axes = 3


@options
class _ConstantPadNd(_PadNd):
    value: float

    def forward(self, input: Tensor) -> Tensor:
        """Pad an input."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Padding of the last axis with a constant.

    Args:
        padding: the length before and after: one number, or (before, after).
        value: the constant.

    >>> gt.nn.ConstantPad1d((0, 1), 5.0)(gt.tensor([[1.0, 2.0]]))
    tensor([[1., 2., 5.]], dtype=float32)
    """

    axes = 1


class ConstantPad2d(_ConstantPadNd):
    """Padding of the last two axes with a constant; `padding` is (left, right, top, bottom)."""

    axes = 2


class ConstantPad3d(_ConstantPadNd):
    """Padding of the last three axes with a constant.

    `padding` is (left, right, top, bottom, front, back).
    """

    axes = 3


class _ZeroPad:
    """A mixin for padding with zeros."""

    padding: int | Sequence[int]

    def __init__(self, padding: int | Sequence[int]):
        super().__init__(padding, 0.0)  # type: ignore[call-arg]

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"{self.padding}"


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """`ConstantPad1d` with zeros; `padding` is one number, or (before, after)."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """`ConstantPad2d` with zeros; `padding` is (left, right, top, bottom)."""


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """`ConstantPad3d` with zeros; `padding` is (left, right, top, bottom, front, back)."""
