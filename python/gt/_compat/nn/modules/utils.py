"""Sizes for each axis, under the names that modules of PyTorch programs use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from gt.nn.sizes import per_axis

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that repeats a number `n` times, and makes a tuple of an iterable."""

    def parse(x: Any) -> tuple[Any, ...]:
        return per_axis(x, n)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """Return the values in reverse order, each `n` times, as `gt.nn.functional.pad` wants them."""
    return tuple(x for x in reversed(tuple(t)) for _ in repeat(None, n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Remove a prefix, such as "module.", from the names in a state, in place.

    Args:
        state_dict: the state, as of a module that `DataParallel` wraps.
        prefix: the prefix; names without it stay.
    """
    for name in list(state_dict):
        if name.startswith(prefix):
            state_dict[name.removeprefix(prefix)] = state_dict.pop(name)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is None:
        return
    for name in list(metadata):
        # The metadata of the wrapper itself has the prefix without its dot.
        if name == prefix.replace(".", ""):
            metadata[""] = metadata.pop(name)
        elif name.startswith(prefix):
            metadata[name.removeprefix(prefix)] = metadata.pop(name)
