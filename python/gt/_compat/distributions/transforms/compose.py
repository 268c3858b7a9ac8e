"""Compositions of transforms, and transforms of shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import gt
from gt._gt import Tensor

from .. import constraints
from .._alias import alias
from ..utils import sum_rightmost
from .transform import Transform, need_axes


def _with_event_dim(constraint: Any, event_dim: int) -> Any:
    added = event_dim - constraint.event_dim
    if added < 0:
        raise AssertionError(f"event_dim {event_dim} must be >= {constraint.event_dim}")
    return constraints.independent(constraint, added) if added else constraint


class ComposeTransform(Transform):
    """The composition of `parts`, applied in order. Caching is done by the parts."""

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        if cache_size:
            parts = [part.with_cache(cache_size) for part in parts]
        super().__init__(cache_size=cache_size)
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = Transform.__hash__

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The domain of the first part, with as many event axes as any part needs."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim += part.domain.event_dim - part.codomain.event_dim
            event_dim = max(event_dim, part.domain.event_dim)
        return _with_event_dim(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The codomain of the last part, with as many event axes as any part needs."""
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim += part.codomain.event_dim - part.domain.event_dim
            event_dim = max(event_dim, part.codomain.event_dim)
        return _with_event_dim(self.parts[-1].codomain, event_dim)

    @property
    def bijective(self) -> bool:
        """Whether all parts are bijective."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        """The product of the parts' signs."""
        return math.prod((part.sign for part in self.parts), start=1)

    @property
    def inv(self) -> Transform:
        """The composition of the parts' inverses, in reverse order."""
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size for its parts."""
        if self._cache_size == cache_size:
            return self
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        """Apply all parts in order."""
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the sum of the parts' log |det| terms."""
        if not self.parts:
            return gt.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = 0
        event_dim = self.domain.event_dim
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            own = part.log_abs_det_jacobian(before, after)
            total = total + sum_rightmost(own, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape after all parts."""
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape before all parts."""
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform with batch axes reinterpreted as event axes: log |det| is summed over these."""

    bijective: bool = alias("base_transform.bijective", "Whether the base transform is bijective.")
    sign: Any = alias("base_transform.sign", "The base transform's sign.")

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(
            self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size
        )

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The base transform's domain, with more event axes."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The base transform's codomain, with more event axes."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    def _call(self, x: Tensor) -> Tensor:
        need_axes(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        need_axes(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the base transform's log |det|, summed over the reinterpreted axes."""
        result = self.base_transform.log_abs_det_jacobian(x, y)
        return sum_rightmost(result, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the base transform's output shape."""
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the base transform's input shape."""
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Reshapes events from `in_shape` to `out_shape`; leading axes are kept."""

    bijective = True

    def __init__(
        self, in_shape: Sequence[int], out_shape: Sequence[int], cache_size: int = 0
    ) -> None:
        self.in_shape = gt.Size(in_shape)
        self.out_shape = gt.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements: {tuple(in_shape)} has "
                f"{self.in_shape.numel()}, {tuple(out_shape)} has {self.out_shape.numel()}"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Events of shape `in_shape`."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Events of shape `out_shape`."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return zeros: a reshape preserves volume."""
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape with `in_shape` replaced by `out_shape`."""
        return _replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape with `out_shape` replaced by `in_shape`."""
        return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape: Sequence[int], old: Sequence[int], new: Sequence[int]) -> Any:
    need_axes(shape, len(old))
    kept = len(shape) - len(old)
    if tuple(shape[kept:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {tuple(old)} but got {tuple(shape[kept:])}")
    return gt.Size((*shape[:kept], *new))
