"""Convolutions that infer the number of input channels from the first input."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor

from .convolution import Conv1d, Conv2d, Conv3d
from .lazy import LazyModuleMixin, UninitializedParameter
from .transposed_convolution import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d


class _LazyConvolution(LazyModuleMixin):
    """The common base of the lazy convolutions."""

    axes: int
    in_channels: int
    out_channels: int
    groups: int
    weight: Any
    bias: Any

    def _forget_shapes(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Initialize the parameters again, if they have shapes."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Infer the number of input channels from an input, and initialize the parameters."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._channels_of(input)
        if self.in_channels % self.groups != 0:
            raise ValueError(
                f"in_channels must be divisible by groups: {self.in_channels} by {self.groups}"
            )
        self.weight.materialize(self._weight_shape())  # type: ignore[attr-defined]
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _channels_of(self, input: Tensor) -> int:
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise RuntimeError(
                f"Expected {self.axes + 1}D (unbatched) or {self.axes + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {tuple(input.shape)}"
            )
        return input.shape[-self.axes - 1]


class _LazyConvNd(_LazyConvolution):
    def __init__(
        self,
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
        super().__init__(
            0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype
        )
        self._forget_shapes(out_channels, bias, device, dtype)


class _LazyConvTransposeNd(_LazyConvolution):
    def __init__(
        self,
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
        sizes = (kernel_size, stride, padding, output_padding)
        super().__init__(0, 0, *sizes, groups, False, dilation, padding_mode, device, dtype)
        self._forget_shapes(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConvNd, Conv1d):
    """A `Conv1d` that infers `in_channels` from the first input.

    >>> gt.nn.LazyConv1d(4, 3)(gt.ones(1, 2, 5)).shape
    (1, 4, 3)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvNd, Conv2d):
    """A `Conv2d` that infers `in_channels` from the first input."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvNd, Conv3d):
    """A `Conv3d` that infers `in_channels` from the first input."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTransposeNd, ConvTranspose1d):
    """A `ConvTranspose1d` that infers `in_channels` from the first input."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTransposeNd, ConvTranspose2d):
    """A `ConvTranspose2d` that infers `in_channels` from the first input."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTransposeNd, ConvTranspose3d):
    """A `ConvTranspose3d` that infers `in_channels` from the first input."""

    cls_to_become = ConvTranspose3d
