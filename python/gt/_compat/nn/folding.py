"""Extraction of image windows as columns, and the reverse."""

from __future__ import annotations

from gt.nn import functional as F

from .forwarding import Forwarding, options

Size = int | tuple[int, ...]


@options
class Unfold(Forwarding, function=F.unfold):
    """A layer that returns each window of (batch, channels, height, width) as a column.

    Args:
        kernel_size: the size of a window.
        dilation: the step from one value in a window to the next.
        padding: the number of zeros before and after each axis.
        stride: the step from one window to the next.

    >>> gt.nn.Unfold((2, 3))(gt.randn(2, 5, 3, 4)).shape
    (2, 30, 4)
    """

    kernel_size: Size
    dilation: Size = 1
    padding: Size = 0
    stride: Size = 1


@options
class Fold(Forwarding, function=F.fold):
    """A layer that adds columns up to images, as overlapping windows; arguments as of `Unfold`.

    `output_size` is the height and width of the images.

    >>> gt.nn.Fold((4, 5), (2, 2))(gt.randn(1, 12, 12)).shape
    (1, 3, 4, 5)
    """

    output_size: Size
    kernel_size: Size
    dilation: Size = 1
    padding: Size = 0
    stride: Size = 1
