"""A tensor of a source, and a source: what all kinds of folders have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import gt
from gt._gt import Tensor


@dataclass(frozen=True)
class Entry:
    """A tensor that is read when it is written.

    Args:
        name: its name in the state of a model.
        dtype: the name of its dtype.
        shape: the length of each axis.
        read: gives it.
        tied: the name of the tensor that it is one with.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], Tensor]
    tied: str | None = None

    @property
    def count(self) -> int:
        """How many numbers it has."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def bytes(self) -> int:
        """How many bytes its values are."""
        return self.count * getattr(gt, self.dtype).itemsize

    def to(self, dtype: str) -> Entry:
        """Give it in another dtype, if its numbers are floats and the dtype is not `"keep"`."""
        is_float = getattr(gt, self.dtype).is_floating_point
        if dtype in ("keep", self.dtype) or not is_float:
            return self
        read = self.read
        return replace(self, dtype=dtype, read=lambda: read().to(dtype))


@dataclass
class Source:
    """A folder that is converted.

    Args:
        folder: where it is.
        entries: its tensors, in their order.
        is_checkpoint: whether it is a checkpoint of GT.
        weights: the files that its tensors are in; others may come along.
        added: names that tie a tensor once more, and were not in the folder that the checkpoint
            was made of.
    """

    folder: str
    entries: list[Entry]
    is_checkpoint: bool
    weights: set[str]
    added: list[str] = field(default_factory=list)
