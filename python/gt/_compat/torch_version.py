"""`torch.torch_version` for PyTorch programs: GT's version, which compares as a version does."""

from __future__ import annotations

from typing import Any

from gt._gt import __version__ as _version

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A version whose comparisons are of its numbers, with a string or a tuple of ints."""

    def _numbers(self, other: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return _numbers_of(str(self)), _numbers_of(other)

    def __lt__(self, other: Any) -> bool:
        own, others = self._numbers(other)
        return own < others

    def __le__(self, other: Any) -> bool:
        own, others = self._numbers(other)
        return own <= others

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        own, others = self._numbers(other)
        return own == others

    __hash__ = str.__hash__


def _numbers_of(version: Any) -> tuple[int, ...]:
    """Return the numbers of a version, without zeros at the end."""
    parts = version.partition("+")[0].split(".") if isinstance(version, str) else version
    numbers = [int("".join(c for c in str(part) if c.isdigit()) or "0") for part in parts]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


__version__ = TorchVersion(_version)
