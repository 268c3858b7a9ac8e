"""Normalization of layers, of groups of channels and over neighbouring channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn import functional as F

from . import init
from .forwarding import Forwarding, options
from .module import Module
from .parameter import Parameter
from .sizes import per_axis, sizes


class _Scaled(Module):
    """The common base of normalizations with a weight, and optionally a bias."""

    weight: Any

    def _register(
        self, shape: tuple[Any, ...], weight: bool, bias: bool | None, made: dict[str, Any]
    ) -> None:
        """Register the parameters; with `bias` None, not even the name is registered."""
        names = [("weight", weight)] + ([] if bias is None else [("bias", weight and bias)])
        for name, wanted in names:
            self.register_parameter(name, Parameter(gt.empty(shape, **made)) if wanted else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set weights to 1 and biases to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if getattr(self, "bias", None) is not None:
            init.zeros_(self.bias)


class LayerNorm(_Scaled):
    """(x - mean) / sqrt(var + eps) over the last axes, scaled and shifted (Ba et al., 2016).

    Args:
        normalized_shape: the shape of the last axes, or the length of the last one.
        eps: added to the variance.
        elementwise_affine: whether the normalized values are scaled and shifted by parameters.
        bias: whether values are also shifted, with `elementwise_affine`.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.

    >>> gt.nn.LayerNorm(2)(gt.tensor([[1.0, 3.0]])).tolist()
    [[-0.9999949932098389, 0.9999949932098389]]
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = sizes("normalized_shape", normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = {"device": device, "dtype": dtype}
        self._register(self.normalized_shape, elementwise_affine, bias, made)

    def forward(self, input: Tensor) -> Tensor:
        """Normalize the last axes."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(_Scaled):
    """x / sqrt(mean(x²) + eps) over the last axes, scaled (Zhang and Sennrich, 2019).

    Args:
        normalized_shape: the shape of the last axes, or the length of the last one.
        eps: added to the mean; by default the dtype's machine epsilon.
        elementwise_affine: whether the normalized values are scaled by a parameter.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.

    >>> gt.nn.RMSNorm(2)(gt.randn(4, 2)).shape
    (4, 2)
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = per_axis(normalized_shape, 1)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = {"device": device, "dtype": dtype}
        self._register(self.normalized_shape, elementwise_affine, None, made)

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last axes."""
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(_Scaled):
    """Normalization of groups of channels, axis 1, in each sample (Wu and He, 2018).

    Args:
        num_groups: the number of groups of channels.
        num_channels: the number of channels.
        eps: added to the variance.
        affine: whether the normalized channels are scaled and shifted by parameters.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.
        bias: whether channels are also shifted, with `affine`.

    >>> gt.nn.GroupNorm(3, 6)(gt.randn(20, 6, 10, 10)).shape
    (20, 6, 10, 10)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        self._register((num_channels,), affine, bias, {"device": device, "dtype": dtype})

    def forward(self, input: Tensor) -> Tensor:
        """Normalize each sample's groups."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


@options
class LocalResponseNorm(Forwarding, function=F.local_response_norm):
    """x / (k + alpha * m)**beta, where m is the mean of squares over neighbouring channels.

    Args:
        size: the number of channels in the mean.
        alpha: the factor of the mean.
        beta: the exponent.
        k: the constant term (Krizhevsky et al., 2012).

    >>> gt.nn.LocalResponseNorm(2)(gt.randn(1, 5, 7, 7)).shape
    (1, 5, 7, 7)
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1.0

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


@options
class CrossMapLRN2d(Forwarding):
    """`LocalResponseNorm` of images, over the channels at most (size - 1) // 2 away.

    PyTorch's layer of this name never removes the first channel from its running sum, and its
    gradient is not that of its result. GT computes both as they are defined.
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    k: float = 1

    def forward(self, input: Tensor) -> Tensor:
        """Normalize (batch, channels, height, width)."""
        if input.ndim != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.ndim}D instead.")
        reach = (self.size - 1) // 2
        width = 2 * reach + 1
        alpha = self.alpha * width / self.size
        return F.local_response_norm(input, width, alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
