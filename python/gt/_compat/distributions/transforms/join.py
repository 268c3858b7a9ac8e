"""Transforms applied to the parts or slices of a tensor along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gt
from gt._gt import Tensor

from .. import constraints
from ..utils import sum_rightmost
from .transform import Transform


class _Joined(Transform):
    """Several transforms, each applied to its part of a tensor along an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        for transform in tseq:
            if not isinstance(transform, Transform):
                kind = type(transform).__name__
                raise AssertionError(f"expected Transform instances, got {kind}")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    @property
    def bijective(self) -> bool:
        """Whether all transforms are bijective."""
        return all(transform.bijective for transform in self.transforms)

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        raise NotImplementedError

    def _check_axis(self, value: Tensor, expected: int) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for tensor with {value.dim()} dimensions"
            )
        length = value.shape[self.dim]
        if length != expected:
            raise AssertionError(f"axis {self.dim} has length {length}, expected {expected}")

    def _each(self, of_part: Callable[..., Tensor], *values: Tensor) -> list[Tensor]:
        parts = zip(*(self._parts(value) for value in values), strict=True)
        return [of_part(t, *own) for t, own in zip(self.transforms, parts, strict=True)]


class CatTransform(_Joined):
    """Transforms of the parts of a tensor along an axis, concatenated as by `gt.cat`.

    `lengths` are the lengths of the parts along the axis, 1 each by default.
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = list(lengths if lengths is not None else [1] * len(self.transforms))
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @property
    def event_dim(self) -> int:
        """The largest number of event axes of any part."""
        return max(transform.event_dim for transform in self.transforms)

    @property
    def length(self) -> int:
        """The length of the axis: the sum of the parts' lengths."""
        return sum(self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        self._check_axis(value, self.length)
        return value.split(self.lengths, self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return gt.cat(self._each(lambda t, part: t(part), x), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return gt.cat(self._each(lambda t, part: t.inv(part), y), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the parts' log |det|, concatenated, or summed if the axis is an event axis."""

        def of_part(transform: Transform, x: Tensor, y: Tensor) -> Tensor:
            own = transform.log_abs_det_jacobian(x, y)
            return sum_rightmost(own, self.event_dim - transform.event_dim)

        logarithms = self._each(of_part, x, y)
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        if dim < 0:
            return gt.cat(logarithms, dim)
        total: Any = sum(logarithms)
        return total

    @constraints.dependent_property
    def domain(self) -> Any:
        """The domains of the parts."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The codomains of the parts."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Joined):
    """Transforms of the slices of a tensor along an axis, stacked as by `gt.stack`."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, value: Tensor) -> Sequence[Tensor]:
        self._check_axis(value, len(self.transforms))
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return gt.stack(self._each(lambda t, part: t(part), x), self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return gt.stack(self._each(lambda t, part: t.inv(part), y), self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the slices' log |det|, stacked."""
        return gt.stack(self._each(lambda t, x, y: t.log_abs_det_jacobian(x, y), x, y), self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        """The domains of the slices."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        """The codomains of the slices."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
