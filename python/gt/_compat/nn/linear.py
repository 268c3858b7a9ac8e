"""Linear and bilinear layers."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn import functional as F

from . import init
from .lazy import LazyModuleMixin, UninitializedParameter
from .module import Module
from .parameter import Parameter


class Identity(Module):
    """The identity; the constructor accepts any arguments."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        """Return the input."""
        return input


class Linear(Module):
    """`x @ weight.T + bias` over the last axis.

    Args:
        in_features: the length of the input's last axis.
        out_features: the length of the output's.
        bias: whether there is a bias.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.

    The weight is (out, in). Weight and bias are initialized uniformly on ±1/sqrt(in).

    >>> gt.nn.Linear(20, 30)(gt.randn(128, 20)).shape
    (128, 30)
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if in_features < 0 or out_features < 0:
            raise ValueError(
                f"Linear: sizes are {in_features} and {out_features}, expected 0 or more"
            )
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(gt.empty((out_features, in_features), **made))
        self.register_parameter(
            "bias", Parameter(gt.empty((out_features,), **made)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters, uniformly on ±1/sqrt(in_features)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Map an input of shape (..., in)."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """`x1 @ weight[k] @ x2 + bias[k]` for each output k, over the last axes.

    Args:
        in1_features: the length of the first input's last axis.
        in2_features: the length of the second's.
        out_features: the length of the output's.
        bias: whether there is a bias.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.

    >>> gt.nn.Bilinear(20, 30, 40)(gt.randn(8, 20), gt.randn(8, 30)).shape
    (8, 40)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = Parameter(gt.empty((out_features, in1_features, in2_features), **made))
        self.register_parameter(
            "bias", Parameter(gt.empty((out_features,), **made)) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters, uniformly on ±1/sqrt(in1_features)."""
        if self.in1_features <= 0:
            raise ValueError(
                f"in1_features must be > 0, but got (in1_features={self.in1_features})"
            )
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Map two inputs whose shapes differ in the last axis only."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that infers `in_features` from the first input.

    >>> layer = gt.nn.LazyLinear(3)
    >>> layer(gt.ones(1, 2)).shape
    (1, 3)
    >>> layer.in_features
    2
    """

    cls_to_become = Linear
    weight: Any

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Initialize the parameters again, if they have shapes."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Infer the number of features from an input, and initialize the parameters."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        elif self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise ValueError(
                    f"LazyLinear: the input has {input.shape[-1]} features, the weight that was "
                    f"loaded is for {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]
