"""Dropout."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F

from .forwarding import Forwarding, options


@options
class _DropoutNd(Forwarding):
    p: float = 0.5
    inplace: bool = False

    def __post_init__(self) -> None:
        if self.p < 0 or self.p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def extra_repr(self) -> str:
        """Return the options shown in the repr."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd, function=F.dropout):
    """A layer that zeroes elements with probability `p` and scales the rest by 1 / (1 - p).

    In evaluation mode, it returns its input.

    Args:
        p: the probability that an element is dropped.
        inplace: whether the result is stored in the input.

    >>> gt.nn.Dropout(0.2).eval()(gt.ones(2))
    tensor([1., 1.], dtype=float32)
    """


class Dropout1d(_DropoutNd, function=F.dropout1d):
    """Dropout of entire channels of (batch, channels, length); arguments as of `Dropout`."""


class Dropout2d(_DropoutNd, function=F.dropout2d):
    """Dropout of entire channels of (batch, channels, height, width); arguments as of `Dropout`."""


class Dropout3d(_DropoutNd, function=F.dropout3d):
    """Dropout of entire channels of (batch, channels, depth, height, width)."""


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean 0 and variance 1, for use with `SELU` (Klambauer et al., 2017).

    As in PyTorch, the input is not changed even with `inplace`.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Drop elements."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of entire channels; it does not change the input either."""

    def forward(self, input: Tensor) -> Tensor:
        """Drop channels."""
        return F.feature_alpha_dropout(input, self.p, self.training)
