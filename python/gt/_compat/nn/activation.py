"""Piecewise linear activations: ReLU and its variants, hard and shrinking activations."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

import gt
from gt._gt import Tensor
from gt._lines import warn
from gt.nn import functional as F

from . import init as _init
from .forwarding import Forwarding, options
from .module import Module
from .parameter import Parameter


@options
class _MaybeInPlace(Forwarding):
    """An activation whose only option is `inplace`."""

    inplace: bool = False


class ReLU(_MaybeInPlace, function=F.relu):
    """max(x, 0); with `inplace`, it is stored in the input.

    >>> gt.nn.ReLU()(gt.tensor([-1.0, 2.0]))
    tensor([0., 2.], dtype=float32)
    """


@options
class Threshold(Forwarding, function=F.threshold):
    """x where it is above `threshold`, `value` elsewhere.

    >>> gt.nn.Threshold(1, 20)(gt.tensor([0.5, 2.0]))
    tensor([20.,  2.], dtype=float32)
    """

    threshold: float
    value: float
    inplace: bool = False


@options
class RReLU(Forwarding, function=F.rrelu):
    """x where it is positive, x times a slope elsewhere (Xu et al., 2015).

    In training mode, each slope is drawn from [lower, upper); otherwise all are their mean.

    >>> gt.nn.RReLU(0.0, 1.0).eval()(gt.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ], dtype=float32)
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False


@options
class Hardtanh(Forwarding, function=F.hardtanh):
    """x clamped to [min_val, max_val]; `min_value` and `max_value` are the old names.

    >>> gt.nn.Hardtanh()(gt.tensor([-3.0, 0.5, 3.0]))
    tensor([-1. ,  0.5,  1. ], dtype=float32)
    """

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False
    min_value: InitVar[float | None] = None
    max_value: InitVar[float | None] = None

    def __post_init__(self, min_value: float | None, max_value: float | None) -> None:
        for name, given in (("min_val", min_value), ("max_val", max_value)):
            if given is not None:
                warn(
                    f"keyword argument `{name}ue` is deprecated and renamed to `{name}`",
                    FutureWarning,
                )
                setattr(self, name, given)
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    _shown_options = ("inplace",)

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)


class Hardsigmoid(_MaybeInPlace, function=F.hardsigmoid):
    """x / 6 + 1/2, clamped to [0, 1]."""

    _shown_options = ()


class Hardswish(_MaybeInPlace, function=F.hardswish):
    """x * hardsigmoid(x) (Howard et al., 2019)."""

    _shown_options = ()


@options
class LeakyReLU(Forwarding, function=F.leaky_relu):
    """x where it is positive, `negative_slope` * x elsewhere.

    >>> gt.nn.LeakyReLU(0.5)(gt.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ], dtype=float32)
    """

    negative_slope: float = 0.01
    inplace: bool = False


class PReLU(Module):
    """x where it is positive, weight * x elsewhere (He et al., 2015).

    Args:
        num_parameters: 1, or the number of channels, axis 1 of the input.
        init: the initial value of the weight.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: its dtype.

    >>> gt.nn.PReLU()(gt.tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ):
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(gt.empty((num_parameters,), device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to its initial value."""
        _init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"num_parameters={self.num_parameters}"


@options
class _Shrink(Forwarding):
    lambd: float = 0.5

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"{self.lambd}"


class Hardshrink(_Shrink, function=F.hardshrink):
    """x where |x| > `lambd`, 0 elsewhere."""


class Softshrink(_Shrink, function=F.softshrink):
    """x moved towards 0 by `lambd`, but not beyond 0."""
