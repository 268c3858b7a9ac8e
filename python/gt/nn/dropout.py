"""Dropouts: noise while training."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.module import Module


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        """Say the probability."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """While training, zero for a share `p` of the elements; the rest is scaled by 1 / (1 - p).

    Args:
        p: the probability of an element to be dropped.
        inplace: whether the input itself is changed.

    >>> gt.nn.Dropout(0.2).eval()(gt.ones(2))
    tensor([1., 1.], dtype=float32)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Drop elements."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Drops whole channels of (batch, channels, length); arguments as of `Dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop channels."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Drops whole channels of (batch, channels, height, width); arguments as of `Dropout`."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop channels."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Drops whole channels of (batch, channels, depth, height, width)."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop channels."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Drops elements such that mean 0 and variance 1 stay; goes with `SELU` (Klambauer, 2017).

    The input stays as it is also with `inplace`, as in PyTorch.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Drop elements."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """Drops whole channels as `AlphaDropout` does elements; the input stays as it is, too."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop channels."""
        return F.feature_alpha_dropout(input, self.p, self.training)
