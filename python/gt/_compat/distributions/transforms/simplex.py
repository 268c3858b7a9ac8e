"""Transforms from vectors to vectors of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor
from gt.nn.functional import logsigmoid, pad

from .. import constraints
from .elementwise import clipped
from .transform import Transform, need_axes


class _ToSimplex(Transform):
    domain = constraints.real_vector
    codomain = constraints.simplex

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = Transform.__hash__


class SoftmaxTransform(_ToSimplex):
    """y = softmax(x), with the pseudoinverse log(y); not bijective, as a shift of x keeps y."""

    def _call(self, x: Tensor) -> Tensor:
        return gt.softmax(x, -1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape unchanged; it must have at least one axis."""
        need_axes(shape, 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_ToSimplex):
    """Vectors of K numbers to K + 1 probabilities by stick breaking.

    Probability i is the fraction sigmoid(x_i - log(K - i + 1)), with i from 1, of what the
    probabilities before it leave of 1, so x = 0 maps to equal probabilities
    (https://mc-stan.org/docs/reference-manual/transforms.html#simplex-transform).
    """

    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        shares = clipped(gt.sigmoid(x - _offset(x)))
        left = (1 - shares).cumprod(-1)
        return pad(shares, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cropped = y[..., :-1]
        left = (1 - cropped.cumsum(-1)).clamp(min=gt.finfo(y.dtype).tiny)
        return cropped.log() - left.log() + _offset(cropped)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum of log(y_i (1 - share_i))."""
        x = x - _offset(x)
        return (logsigmoid(x) - x + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape with the last axis one longer."""
        need_axes(shape, 1)
        return gt.Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape with the last axis one shorter."""
        need_axes(shape, 1)
        return gt.Size((*shape[:-1], shape[-1] - 1))


def _offset(x: Tensor) -> Tensor:
    """Return log(K), log(K - 1), ..., log(1) for vectors of length K."""
    return gt.arange(x.shape[-1], 0, -1, dtype=x.dtype).log()
