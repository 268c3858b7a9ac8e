"""The base of all transforms, and the inverse of a transform."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gt._gt import Tensor

from .. import constraints
from .._alias import alias


class Transform:
    """An invertible map y = t(x), or one with a pseudoinverse.

    Subclasses define `domain` and `codomain`, `_call`, `_inverse` and, if `bijective`,
    `log_abs_det_jacobian(x, y)`. For a monotone elementwise map, `sign` is 1 or -1, or a tensor
    of them. With `cache_size=1` the last pair of x and y is cached, so `t.inv(y)` returns the
    same tensor x, with the gradient from x to y on the tape.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, not {cache_size}")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached_x_y: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """The number of axes of an event, if it is the same for domain and codomain."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse transform; `t.inv.inv` is t."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """The sign of the Jacobian determinant, if it is the same everywhere."""
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the transform with the given cache size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return hash(type(self))

    def __call__(self, x: Tensor) -> Tensor:
        """Return y = t(x)."""
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no _call")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} defines no _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return log |dy/dx| for events x and y = t(x)."""
        raise NotImplementedError(f"{type(self).__name__} has no log_abs_det_jacobian")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of t(x) for a shape of x."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of x for a shape of t(x)."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform, returned by its `inv`."""

    _inv: Transform
    bijective: bool = alias("_inv.bijective", "Whether the transform is bijective.")
    sign: Any = alias("_inv.sign", "The transform's sign.")
    inv: Transform = alias("_inv", "The transform itself.")

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The codomain of the transform."""
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The domain of the transform."""
        return self._inv.domain

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the inverse of the transform with the given cache size."""
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = Transform.__hash__

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the negative of the transform's log |dy/dx|."""
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of the transform's x."""
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Any:
        """Return the shape of the transform's y."""
        return self._inv.forward_shape(shape)


def need_axes(shape: Sequence[int], count: int) -> None:
    """Raise a ValueError if `shape` has fewer than `count` axes, those of an event."""
    if len(shape) < count:
        raise ValueError(
            f"Too few dimensions on input: shape {tuple(shape)}, expected {count} axes or more"
        )
