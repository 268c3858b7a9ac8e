"""Layers."""

import math

from gt import _gt
from gt._gt import Tensor
from gt.nn import functional
from gt.nn.module import Module, Parameter


class Linear(Module):
    """`x @ weight.T + bias`; the weight is out x in, as PyTorch's."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True):
        super().__init__()
        if in_features < 0 or out_features < 0:
            raise ValueError(
                f"Linear: sizes are {in_features} and {out_features}, expected 0 or more"
            )
        self.in_features, self.out_features = in_features, out_features
        # Uniform on ±1/sqrt(in), as PyTorch starts them.
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        self.weight = Parameter((_gt.rand(out_features, in_features) * 2 - 1) * bound)
        self.bias = Parameter((_gt.rand(out_features) * 2 - 1) * bound) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """Give `x @ weight.T + bias` for x of shape (..., in)."""
        out = x @ self.weight.T
        return out if self.bias is None else out + self.bias

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"{self.in_features}, {self.out_features}, bias={self.bias is not None}"


class Dropout(Module):
    """While training, zero for a share `p` of the elements; the rest is scaled by 1 / (1 - p)."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"Dropout: the probability is {p}, expected 0 to 1")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop elements while training."""
        return functional.dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        """Say the probability."""
        return f"p={self.p}"


class Flatten(Module):
    """All axes from `start_dim` to `end_dim` as one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Tensor) -> Tensor:
        """Merge the axes."""
        return x.flatten(self.start_dim, self.end_dim)
