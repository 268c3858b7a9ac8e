"""Elementwise transforms with parameters: affine maps and powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from .. import constraints
from .._alias import alias
from ..utils import Number, broadcast_all, sum_rightmost
from .transform import Transform


class AffineTransform(Transform):
    """y = loc + scale x, for numbers or for events with `event_dim` axes."""

    bijective = True
    event_dim: int = alias("_event_dim", "The number of axes of an event.")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The real numbers, or events of real numbers."""
        if self._event_dim == 0:
            return constraints.real
        return constraints.independent(constraints.real, self._event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The real numbers, or events of real numbers."""
        return self.domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self._event_dim, cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, AffineTransform)
            and _same(self.loc, other.loc)
            and _same(self.scale, other.scale)
        )

    __hash__ = Transform.__hash__

    @property
    def sign(self) -> Any:
        """The sign of the scale: a number or a tensor."""
        if isinstance(self.scale, Number):
            return (self.scale > 0) - (self.scale < 0)  # type: ignore[operator]
        return self.scale.sign()

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |scale|, summed over an event."""
        if isinstance(self.scale, Number):
            result = gt.full_like(x, math.log(abs(self.scale)))
        else:
            result = self.scale.abs().log().expand(x.shape)
        return sum_rightmost(result, self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Broadcast a shape with the parameters."""
        return gt.broadcast_shapes(shape, _shape(self.loc), _shape(self.scale))

    inverse_shape = forward_shape


class PowerTransform(Transform):
    """y = x^exponent, for positive x."""

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        return PowerTransform(self.exponent, cache_size=cache_size)

    @property
    def sign(self) -> Any:
        """The sign of the exponent."""
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and _same(self.exponent, other.exponent)

    __hash__ = Transform.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |exponent y / x|."""
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Broadcast a shape with the exponent."""
        return gt.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, Tensor) else ()


def _same(a: Any, b: Any) -> bool:
    """Return whether two numbers or tensors are equal; comparing tensors fetches one boolean."""
    same = a == b
    return bool(same.all()) if isinstance(same, Tensor) else bool(same)
