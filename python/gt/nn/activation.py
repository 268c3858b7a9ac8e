"""Piecewise linear activations: ReLU and its variants, hard and shrinking activations."""

from __future__ import annotations

import warnings
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn import init as _init
from gt.nn.module import Module
from gt.nn.parameter import Parameter


def _in_place(inplace: bool) -> str:
    """Return the repr's text of `inplace`, for the end of a list of options."""
    return ", inplace=True" if inplace else ""


class _MaybeInPlace(Module):
    """An activation whose only option is `inplace`."""

    def __init__(self, inplace: bool = False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return "inplace=True" if self.inplace else ""


class ReLU(_MaybeInPlace):
    """max(x, 0); with `inplace`, it is stored in the input.

    >>> gt.nn.ReLU()(gt.tensor([-1.0, 2.0]))
    tensor([0., 2.], dtype=float32)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.relu(input, self.inplace)


class Threshold(Module):
    """x where it is above `threshold`, `value` elsewhere.

    >>> gt.nn.Threshold(1, 20)(gt.tensor([0.5, 2.0]))
    tensor([20.,  2.], dtype=float32)
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False):
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"threshold={self.threshold}, value={self.value}{_in_place(self.inplace)}"


class RReLU(Module):
    """x where it is positive, x times a slope elsewhere (Xu et al., 2015).

    In training mode, each slope is drawn from [lower, upper); otherwise all are their mean.

    >>> gt.nn.RReLU(0.0, 1.0).eval()(gt.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ], dtype=float32)
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"lower={self.lower}, upper={self.upper}{_in_place(self.inplace)}"


class Hardtanh(Module):
    """x clamped to [min_val, max_val]; `min_value` and `max_value` are the old names.

    >>> gt.nn.Hardtanh()(gt.tensor([-3.0, 0.5, 3.0]))
    tensor([-1. ,  0.5,  1. ], dtype=float32)
    """

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ):
        super().__init__()
        for old, given in (("min_val", min_value), ("max_val", max_value)):
            if given is not None:
                warnings.warn(
                    f"keyword argument `{old}ue` is deprecated and renamed to `{old}`",
                    FutureWarning,
                    stacklevel=2,
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if self.max_val <= self.min_val:
            raise AssertionError(
                f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})"
            )

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"min_val={self.min_val}, max_val={self.max_val}{_in_place(self.inplace)}"


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace: bool = False):
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return "inplace=True" if self.inplace else ""


class Hardsigmoid(_MaybeInPlace):
    """x / 6 + 1/2, clamped to [0, 1]."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.hardsigmoid(input, self.inplace)

    def extra_repr(self) -> str:
        """Return an empty string, as in PyTorch."""
        return ""


class Hardswish(_MaybeInPlace):
    """x * hardsigmoid(x) (Howard et al., 2019)."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.hardswish(input, self.inplace)

    def extra_repr(self) -> str:
        """Return an empty string, as in PyTorch."""
        return ""


class LeakyReLU(Module):
    """x where it is positive, `negative_slope` * x elsewhere.

    >>> gt.nn.LeakyReLU(0.5)(gt.tensor([-1.0, 2.0]))
    tensor([-0.5,  2. ], dtype=float32)
    """

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False):
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"negative_slope={self.negative_slope}{_in_place(self.inplace)}"


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


class _Shrink(Module):
    def __init__(self, lambd: float = 0.5):
        super().__init__()
        self.lambd = lambd

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"{self.lambd}"


class Hardshrink(_Shrink):
    """x where |x| > `lambd`, 0 elsewhere."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.hardshrink(input, self.lambd)


class Softshrink(_Shrink):
    """x moved towards 0 by `lambd`, but not beyond 0."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply the activation to the input."""
        return F.softshrink(input, self.lambd)
