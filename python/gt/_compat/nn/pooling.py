"""Pooling: maxima, averages and norms of windows."""

from __future__ import annotations

from gt.nn import functional as F

from .forwarding import Forwarding, options
from .sizes import per_axis

Size = int | tuple[int, ...]


@options
class _MaxPoolNd(Forwarding):
    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    dilation: Size = 1
    return_indices: bool = False
    ceil_mode: bool = False

    _shown_options = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class MaxPool1d(_MaxPoolNd, function=F.max_pool1d):
    """The maximum of each window over the last axis.

    Args:
        kernel_size: the length of a window.
        stride: the step from one window to the next; `kernel_size` by default.
        padding: how far windows extend beyond both ends, at most half a window.
        dilation: the step from one value in a window to the next.
        return_indices: whether to also return the indices of the maxima.
        ceil_mode: whether a last window may extend beyond the end.

    >>> gt.nn.MaxPool1d(3, stride=2)(gt.randn(20, 16, 50)).shape
    (20, 16, 24)
    """


class MaxPool2d(_MaxPoolNd, function=F.max_pool2d):
    """The maximum of each window over the last two axes; arguments as of `MaxPool1d`.

    >>> gt.nn.MaxPool2d((2, 3))(gt.randn(1, 16, 8, 9)).shape
    (1, 16, 4, 3)
    """


class MaxPool3d(_MaxPoolNd, function=F.max_pool3d):
    """The maximum of each window over the last three axes; arguments as of `MaxPool1d`."""


class _AvgPoolNd(Forwarding):
    _shown_options = ("kernel_size", "stride", "padding")


@options
class AvgPool1d(_AvgPoolNd, function=F.avg_pool1d):
    """The average of each window over the last axis.

    Args:
        kernel_size: the length of a window.
        stride: the step from one window to the next; `kernel_size` by default.
        padding: the number of zeros before and after, at most half a window.
        ceil_mode: whether a last window may extend beyond the end.
        count_include_pad: whether averages include the padding.

    >>> gt.nn.AvgPool1d(3, stride=2)(gt.randn(2, 3, 7)).shape
    (2, 3, 3)
    """

    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    ceil_mode: bool = False
    count_include_pad: bool = True

    def __post_init__(self) -> None:
        self.stride = per_axis(self.kernel_size if self.stride is None else self.stride, 1)
        self.kernel_size = per_axis(self.kernel_size, 1)
        self.padding = per_axis(self.padding, 1)


@options
class _AvgPoolOfAxes(_AvgPoolNd):
    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0
    ceil_mode: bool = False
    count_include_pad: bool = True
    divisor_override: int | None = None

    def __post_init__(self) -> None:
        self.stride = self.kernel_size if self.stride is None else self.stride


class AvgPool2d(_AvgPoolOfAxes, function=F.avg_pool2d):
    """The average of each window over the last two axes; arguments as of `AvgPool1d`.

    With `divisor_override`, sums are divided by it instead of the size of the window.
    """


class AvgPool3d(_AvgPoolOfAxes, function=F.avg_pool3d):
    """The average of each window over the last three axes; arguments as of `AvgPool2d`."""


@options
class _LPPoolNd(Forwarding):
    norm_type: float
    kernel_size: Size
    stride: Size | None = None
    ceil_mode: bool = False

    def __post_init__(self) -> None:
        if self.norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {self.norm_type}")


class LPPool1d(_LPPoolNd, function=F.lp_pool1d):
    """The norm (sum of x^p)^(1/p) of each window over the last axis.

    Args:
        norm_type: the exponent p.
        kernel_size: the length of a window.
        stride: the step from one window to the next; `kernel_size` by default.
        ceil_mode: whether a last window may extend beyond the end.

    >>> gt.nn.LPPool1d(2, 3, stride=2)(gt.randn(2, 3, 7)).shape
    (2, 3, 3)
    """


class LPPool2d(_LPPoolNd, function=F.lp_pool2d):
    """The norm of each window over the last two axes; arguments as of `LPPool1d`."""


class LPPool3d(_LPPoolNd, function=F.lp_pool3d):
    """The norm of each window over the last three axes; arguments as of `LPPool1d`."""
