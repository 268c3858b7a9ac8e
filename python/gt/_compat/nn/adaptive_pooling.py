"""Pooling to a given output size, in adaptive and fractional windows; and max unpooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gt._gt import Tensor
from gt.nn import functional as F

from .forwarding import Forwarding, options
from .sizes import per_axis

Size = int | tuple[int, ...]
OptionalSize = int | None | tuple[int | None, ...]


@options
class _AdaptiveAvgPoolNd(Forwarding):
    output_size: OptionalSize


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool1d):
    """Averages of `output_size` windows over the last axis.

    >>> gt.nn.AdaptiveAvgPool1d(5)(gt.randn(1, 64, 8)).shape
    (1, 64, 5)
    """


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool2d):
    """Averages of windows over the last two axes; None keeps the length of an axis.

    >>> gt.nn.AdaptiveAvgPool2d((5, None))(gt.randn(1, 64, 8, 9)).shape
    (1, 64, 5, 9)
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd, function=F.adaptive_avg_pool3d):
    """Averages of windows over the last three axes; None keeps the length of an axis."""


@options
class _AdaptiveMaxPoolNd(Forwarding):
    output_size: OptionalSize
    return_indices: bool = False

    _shown_options = ("output_size",)


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool1d):
    """Maxima of `output_size` windows over the last axis."""


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool2d):
    """Maxima of windows over the last two axes; None keeps the length of an axis."""


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd, function=F.adaptive_max_pool3d):
    """Maxima of windows over the last three axes; None keeps the length of an axis."""


class _FractionalMaxPoolNd(Forwarding):
    axes: int
    kernel_size: tuple[Any, ...]
    output_size: tuple[Any, ...] | None
    output_ratio: tuple[Any, ...] | None
    return_indices: bool
    _random_samples: Tensor | None
    _shown_options = ()

    def __init__(
        self,
        kernel_size: Size,
        output_size: Size | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        name = type(self).__name__
        if self.axes == 3 and not all(size > 0 for size in per_axis(kernel_size, 3)):
            raise ValueError(f"kernel_size must be greater than 0, but got {kernel_size}")
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size = per_axis(kernel_size, self.axes)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else per_axis(output_size, self.axes)
        self.output_ratio = None if output_ratio is None else per_axis(output_ratio, self.axes)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")


class FractionalMaxPool2d(_FractionalMaxPoolNd, function=F.fractional_max_pool2d):
    """The maximum of windows over the last two axes that start at random positions (Graham, 2015).

    Args:
        kernel_size: the size of a window.
        output_size: the number of windows along each axis.
        output_ratio: instead of `output_size`, the number of windows as a fraction of the input's
            length, between 0 and 1.
        return_indices: whether to also return the indices of the maxima.
        _random_samples: numbers from 0 to 1 that determine the positions, instead of random ones.

    >>> gt.nn.FractionalMaxPool2d(3, output_ratio=0.5)(gt.randn(1, 2, 8, 10)).shape
    (1, 2, 4, 5)
    """

    axes = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd, function=F.fractional_max_pool3d):
    """Fractional max pooling over the last three axes; arguments as of `FractionalMaxPool2d`."""

    axes = 3


@options
class _MaxUnpoolNd(Forwarding):
    kernel_size: Size
    stride: Size | None = None
    padding: Size = 0

    axes = 0

    def __post_init__(self) -> None:
        stride = self.kernel_size if self.stride is None else self.stride
        self.stride = per_axis(stride, self.axes)
        self.kernel_size = per_axis(self.kernel_size, self.axes)
        self.padding = per_axis(self.padding, self.axes)

    def forward(  # type: ignore[override]
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Return values at the indices that pooling returned, with zeros elsewhere."""
        return self._call_function(input, indices, output_size=output_size)


class MaxUnpool1d(_MaxUnpoolNd, function=F.max_unpool1d):
    """The partial inverse of `MaxPool1d`: all values but the maxima are zero.

    Args:
        kernel_size: the length of a window of the pooling.
        stride: the step from one window to the next; `kernel_size` by default.
        padding: the pooling's padding.

    >>> values, places = gt.nn.MaxPool1d(2, return_indices=True)(gt.tensor([[1.0, 4.0, 3.0, 2.0]]))
    >>> gt.nn.MaxUnpool1d(2)(values, places)
    tensor([[0., 4., 3., 0.]], dtype=float32)
    """

    axes = 1


class MaxUnpool2d(_MaxUnpoolNd, function=F.max_unpool2d):
    """The partial inverse of `MaxPool2d`; arguments as of `MaxUnpool1d`."""

    axes = 2


class MaxUnpool3d(_MaxUnpoolNd, function=F.max_unpool3d):
    """The partial inverse of `MaxPool3d`; arguments as of `MaxUnpool1d`."""

    axes = 3
