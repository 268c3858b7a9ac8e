"""The base of all constraints."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor


def plain(value: Any) -> Any:
    """Return the number in a 0-dimensional tensor, for messages; other values unchanged."""
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value


class Constraint:
    """A region that values lie in.

    `is_discrete` is whether the region is discrete; `event_dim` is the number of trailing axes
    that make up one event.
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        """Return a bool tensor: whether each event in `value` lies in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_") + "()"
