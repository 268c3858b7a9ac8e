"""Extraction of image windows as columns, and the reverse."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module

Size = int | tuple[int, ...]


class Unfold(Module):
    """A layer that returns each window of (batch, channels, height, width) as a column.

    Args:
        kernel_size: the size of a window.
        dilation: the step from one value in a window to the next.
        padding: the number of zeros before and after each axis.
        stride: the step from one window to the next.

    >>> gt.nn.Unfold((2, 3))(gt.randn(2, 5, 3, 4)).shape
    (2, 30, 4)
    """

    def __init__(self, kernel_size: Size, dilation: Size = 1, padding: Size = 0, stride: Size = 1):
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the columns."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """A layer that adds columns up to images, as overlapping windows; arguments as of `Unfold`.

    `output_size` is the height and width of the images.

    >>> gt.nn.Fold((4, 5), (2, 2))(gt.randn(1, 12, 12)).shape
    (1, 3, 4, 5)
    """

    def __init__(
        self,
        output_size: Size,
        kernel_size: Size,
        dilation: Size = 1,
        padding: Size = 0,
        stride: Size = 1,
    ):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the images."""
        return F.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )
