"""The base of all constraints."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor


def plain(value: Any) -> Any:
    """Give the number of a tensor without axes, for texts; anything else as it is."""
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value


class Constraint:
    """A region that values lie in.

    `is_discrete` says whether it is discrete; `event_dim` counts the last axes that make one event.
    """

    is_discrete: bool = False
    event_dim: int = 0

    def check(self, value: Tensor) -> Tensor:
        """Give a bool for each event of value: whether it lies in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__.lstrip("_") + "()"
