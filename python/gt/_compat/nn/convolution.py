"""Convolutions."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn import functional as F

from . import init
from .module import Module
from .parameter import Parameter
from .sizes import per_axis, sizes

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """The common base of all convolutions: sizes, parameters and their initialization."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        _check(in_channels, out_channels, groups, stride, padding, padding_mode)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride = kernel_size, stride
        self.padding, self.dilation = padding, dilation
        self.transposed, self.output_padding = transposed, output_padding
        self.groups, self.padding_mode = groups, padding_mode
        self._padded = _padding_of_axes(padding, dilation, kernel_size)
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight = Parameter(gt.empty(self._weight_shape(), **made))
        self.register_parameter(
            "bias", Parameter(gt.empty((out_channels,), **made)) if bias else None
        )
        self.reset_parameters()

    def _weight_shape(self) -> tuple[int, ...]:
        first, second = self.out_channels, self.in_channels
        if self.transposed:
            first, second = second, first
        return (first, second // self.groups, *self.kernel_size)

    def reset_parameters(self) -> None:
        """Initialize the parameters, uniformly on ±1/sqrt(fan in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        parts = [
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check(
    in_channels: int, out_channels: int, groups: int, stride: Any, padding: Any, padding_mode: str
) -> None:
    if groups <= 0:
        raise ValueError(f"groups must be a positive integer, got {groups}")
    for what, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups != 0:
            raise ValueError(f"{what} must be divisible by groups: {channels} by {groups}")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of 'same', 'valid'"
            )
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {PADDING_MODES}, but got padding_mode='{padding_mode}'"
        )


def _padding_of_axes(
    padding: Any, dilation: tuple[Any, ...], kernel_size: tuple[Any, ...]
) -> list[int]:
    """Return the padding before and after each axis, the last first, in the form of `F.pad`."""
    if not isinstance(padding, str):
        return [amount for amount in reversed(padding) for _ in range(2)]
    padded: list[int] = []
    for step, size in zip(reversed(dilation), reversed(kernel_size), strict=True):
        total = step * (size - 1) if padding == "same" else 0
        padded += [total // 2, total - total // 2]
    return padded


class _ConvNd(_Convolution):
    """A convolution over the last axes."""

    axes: int

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = 1,
        padding: int | tuple[int, ...] | str = 0,
        dilation: int | tuple[int, ...] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        axes = self.axes
        super().__init__(
            in_channels,
            out_channels,
            sizes("kernel_size", kernel_size, axes),
            sizes("stride", stride, axes),
            padding if isinstance(padding, str) else sizes("padding", padding, axes),
            sizes("dilation", dilation, axes),
            False,
            per_axis(0, axes),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        """Convolve (batch, channels, axes...) or (channels, axes...)."""
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self.axes - 1]
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._padded, mode=self.padding_mode), 0
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_ConvNd):
    """A convolution over the last axis of (batch, channels, length).

    Args:
        in_channels: the number of channels of the input.
        out_channels: the number of channels of the output.
        kernel_size: the length of a kernel. This and the following sizes are one number for all
            axes, or one per axis.
        stride: the step from one window to the next.
        padding: the length of the padding before and after each axis; "valid" for none, and "same"
            for an output as long as the input.
        dilation: the step from one value in a window to the next.
        groups: the number of groups of channels, each of which has its own output channels.
        bias: whether there is a bias.
        padding_mode: "zeros", "reflect", "replicate" or "circular".
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.

    The weight is (out, in / groups, kernel).

    >>> gt.nn.Conv1d(16, 33, 3, stride=2)(gt.randn(20, 16, 50)).shape
    (20, 33, 24)
    """

    axes = 1


class Conv2d(_ConvNd):
    """A convolution over the last two axes; arguments as of `Conv1d`.

    >>> gt.nn.Conv2d(3, 8, (3, 5), padding=(1, 2))(gt.randn(2, 3, 10, 12)).shape
    (2, 8, 10, 12)
    """

    axes = 2


class Conv3d(_ConvNd):
    """A convolution over the last three axes; arguments as of `Conv1d`.

    >>> gt.nn.Conv3d(3, 4, 2, stride=2)(gt.randn(1, 3, 4, 4, 4)).shape
    (1, 4, 2, 2, 2)
    """

    axes = 3
