"""`torch.futures` for PyTorch programs: results that arrive later are `concurrent.futures`'s."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gt._absent import absent_names

__all__ = ["wait_all"]


def wait_all(futures: Iterable[Any]) -> list[Any]:
    """Return the results of futures, after waiting for each."""
    return [future.result() for future in futures]


globals().update(
    absent_names(__name__, "Future collect_all", "concurrent.futures.Future of Python's library")
)
