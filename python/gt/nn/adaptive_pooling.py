"""Pooling to a given output size, in adaptive and fractional windows; and max unpooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module
from gt.nn.sizes import per_axis

Size = int | tuple[int, ...]
OptionalSize = int | None | tuple[int | None, ...]


class _AdaptiveAvgPoolNd(Module):
    axes: int
    output_size: Any

    def __init__(self, output_size: OptionalSize):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the averages of windows that cover the input."""
        pools = (F.adaptive_avg_pool1d, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d)
        return pools[self.axes - 1](input, self.output_size)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Averages of `output_size` windows over the last axis.

    >>> gt.nn.AdaptiveAvgPool1d(5)(gt.randn(1, 64, 8)).shape
    (1, 64, 5)
    """

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Averages of windows over the last two axes; None keeps the length of an axis.

    >>> gt.nn.AdaptiveAvgPool2d((5, None))(gt.randn(1, 64, 8, 9)).shape
    (1, 64, 5, 9)
    """

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Averages of windows over the last three axes; None keeps the length of an axis."""

    axes = 3


class _AdaptiveMaxPoolNd(Module):
    axes: int
    output_size: Any

    def __init__(self, output_size: OptionalSize, return_indices: bool = False):
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor) -> Any:
        """Return maxima of windows that cover the input, and indices with `return_indices`."""
        pools = (F.adaptive_max_pool1d, F.adaptive_max_pool2d, F.adaptive_max_pool3d)
        return pools[self.axes - 1](input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of `output_size` windows over the last axis."""

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of windows over the last two axes; None keeps the length of an axis."""

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of windows over the last three axes; None keeps the length of an axis."""

    axes = 3


class _FractionalMaxPoolNd(Module):
    axes: int

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

    def forward(self, input: Tensor) -> Any:
        """Return the maximum of each window and, with `return_indices`, its index."""
        pool = F.fractional_max_pool2d if self.axes == 2 else F.fractional_max_pool3d
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
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


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Fractional max pooling over the last three axes; arguments as of `FractionalMaxPool2d`."""

    axes = 3


class _MaxUnpoolNd(Module):
    axes: int

    def __init__(self, kernel_size: Size, stride: Size | None = None, padding: Size = 0):
        super().__init__()
        self.kernel_size = per_axis(kernel_size, self.axes)
        self.stride = per_axis(kernel_size if stride is None else stride, self.axes)
        self.padding = per_axis(padding, self.axes)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Return values at the indices that pooling returned, with zeros elsewhere."""
        unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.axes - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
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


class MaxUnpool2d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool2d`; arguments as of `MaxUnpool1d`."""

    axes = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """The partial inverse of `MaxPool3d`; arguments as of `MaxUnpool1d`."""

    axes = 3
