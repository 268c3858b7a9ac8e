"""Pooling: maxima, averages and norms of windows."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module
from gt.nn.sizes import per_axis

Size = int | tuple[int, ...]


class _MaxPoolNd(Module):
    axes: int

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        dilation: Size = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        """Return the maximum of each window and, with `return_indices`, its index."""
        pool = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.axes - 1]
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
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

    axes = 1


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window over the last two axes; arguments as of `MaxPool1d`.

    >>> gt.nn.MaxPool2d((2, 3))(gt.randn(1, 16, 8, 9)).shape
    (1, 16, 4, 3)
    """

    axes = 2


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window over the last three axes; arguments as of `MaxPool1d`."""

    axes = 3


class _AvgPoolNd(Module):
    kernel_size: Any
    stride: Any
    padding: Any

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
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

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__()
        self.kernel_size = per_axis(kernel_size, 1)
        self.stride = per_axis(kernel_size if stride is None else stride, 1)
        self.padding = per_axis(padding, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        """Return the average of each window."""
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolOfAxes(_AvgPoolNd):
    axes: int

    def __init__(
        self,
        kernel_size: Size,
        stride: Size | None = None,
        padding: Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Return the average of each window."""
        pool = F.avg_pool2d if self.axes == 2 else F.avg_pool3d
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolOfAxes):
    """The average of each window over the last two axes; arguments as of `AvgPool1d`.

    With `divisor_override`, sums are divided by it instead of the size of the window.
    """

    axes = 2


class AvgPool3d(_AvgPoolOfAxes):
    """The average of each window over the last three axes; arguments as of `AvgPool2d`."""

    axes = 3


class _LPPoolNd(Module):
    axes: int
    kernel_size: Any

    def __init__(
        self,
        norm_type: float,
        kernel_size: Size,
        stride: Size | None = None,
        ceil_mode: bool = False,
    ):
        super().__init__()
        if norm_type == 0:
            raise ValueError(f"norm_type must be a non-zero value, but got {norm_type}")
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        """Return the norm of each window."""
        pool = (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self.axes - 1]
        return pool(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The norm (sum of x^p)^(1/p) of each window over the last axis.

    Args:
        norm_type: the exponent p.
        kernel_size: the length of a window.
        stride: the step from one window to the next; `kernel_size` by default.
        ceil_mode: whether a last window may extend beyond the end.

    >>> gt.nn.LPPool1d(2, 3, stride=2)(gt.randn(2, 3, 7)).shape
    (2, 3, 3)
    """

    axes = 1


class LPPool2d(_LPPoolNd):
    """The norm of each window over the last two axes; arguments as of `LPPool1d`."""

    axes = 2


class LPPool3d(_LPPoolNd):
    """The norm of each window over the last three axes; arguments as of `LPPool1d`."""

    axes = 3
