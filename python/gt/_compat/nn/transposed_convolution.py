"""Transposed convolutions: the gradients of convolutions as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gt._gt import Tensor
from gt.nn import functional as F

from .convolution import _Convolution
from .sizes import per_axis


class _ConvTransposeNd(_Convolution):
    """A transposed convolution over the last axes."""

    axes: int
    padding: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] = 0,
        output_padding: int | tuple[int, ...] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | tuple[int, ...] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, '
                f'got "{padding_mode}"'
            )
        axes = self.axes
        super().__init__(
            in_channels,
            out_channels,
            per_axis(kernel_size, axes),
            per_axis(stride, axes),
            per_axis(padding, axes),
            per_axis(dilation, axes),
            True,
            per_axis(output_padding, axes),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Apply the convolution; `output_size` selects one of the sizes that `stride` allows."""
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.axes - 1]
        output_padding = self.output_padding
        if output_size is not None:
            output_padding = self._padding_for(input, output_size)
        return convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )

    def _padding_for(self, input: Tensor, output_size: Sequence[int]) -> tuple[int, ...]:
        """Return the output padding that produces an output size."""
        axes = self.axes
        before = input.ndim - axes
        wanted = list(output_size)
        if len(wanted) == before + axes:
            wanted = wanted[before:]
        if len(wanted) != axes:
            raise ValueError(
                f"ConvTranspose{axes}D: for {input.ndim}D input, output_size must have {axes} or "
                f"{before + axes} elements (got {len(output_size)})"
            )
        each = zip(
            input.shape[before:],
            self.stride,
            self.padding,
            self.dilation,
            self.kernel_size,
            strict=True,
        )
        smallest = [
            (length - 1) * step - 2 * pad + dilation * (size - 1) + 1
            for length, step, pad, dilation, size in each
        ]
        largest = [least + step - 1 for least, step in zip(smallest, self.stride, strict=True)]
        fits = zip(smallest, wanted, largest, strict=True)
        if not all(least <= size <= most for least, size, most in fits):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {smallest} to "
                f"{largest} (for an input of {tuple(input.shape[before:])})"
            )
        return tuple(size - least for size, least in zip(wanted, smallest, strict=True))


class ConvTranspose1d(_ConvTransposeNd):
    """A transposed convolution over the last axis of (batch, channels, length).

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the output.
        kernel_size: the length of a kernel. This and the following sizes are one number for all
            axes, or one per axis.
        stride: the step from one window of the output to the next.
        padding: the length removed from the output before and after each axis.
        output_padding: the length added to the output after each axis, less than the stride.
        groups: the number of groups of channels, each of which has its own output channels.
        bias: whether there is a bias.
        dilation: the step from one value in a window to the next.
        padding_mode: "zeros".
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.

    The weight is (in, out / groups, kernel).

    >>> gt.nn.ConvTranspose1d(4, 2, 3, stride=2)(gt.randn(1, 4, 5)).shape
    (1, 2, 11)
    """

    axes = 1


class ConvTranspose2d(_ConvTransposeNd):
    """A transposed convolution over the last two axes; arguments as of `ConvTranspose1d`.

    >>> gt.nn.ConvTranspose2d(4, 2, 3, stride=2)(gt.randn(1, 4, 5, 5), [12, 12]).shape
    (1, 2, 12, 12)
    """

    axes = 2


class ConvTranspose3d(_ConvTransposeNd):
    """A transposed convolution over the last three axes; arguments as of `ConvTranspose1d`.

    >>> gt.nn.ConvTranspose3d(2, 1, 2)(gt.randn(1, 2, 3, 3, 3)).shape
    (1, 1, 4, 4, 4)
    """

    axes = 3
