"""The common description of a source of a conversion, and of its tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import gt
from gt._gt import Tensor


@dataclass(frozen=True)
class Entry:
    """A tensor of a source, whose values are read only when they are written.

    Args:
        name: the tensor's name in the state of a model.
        dtype: the name of the dtype.
        shape: the length of each axis.
        read: reads the tensor.
        tied: the name of the tensor that it shares its values with, if any.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    read: Callable[[], Tensor]
    tied: str | None = None

    @property
    def count(self) -> int:
        """The number of elements."""
        count = 1
        for length in self.shape:
            count *= length
        return count

    @property
    def bytes(self) -> int:
        """The size of the values in bytes."""
        return self.count * getattr(gt, self.dtype).itemsize

    def to(self, dtype: str) -> Entry:
        """Return the entry in another dtype; unchanged if not floating-point or for `"keep"`."""
        is_float = getattr(gt, self.dtype).is_floating_point
        if dtype in ("keep", self.dtype) or not is_float:
            return self
        read = self.read
        return replace(self, dtype=dtype, read=lambda: read().to(dtype))


@dataclass
class Source:
    """A folder to convert.

    Args:
        folder: the path of the folder.
        entries: the tensors, in their order.
        is_checkpoint: whether the folder is a GT checkpoint.
        weights: the files that contain the tensors; other files may be copied.
        added: names of tied tensors that were added to the checkpoint because its model ties them,
            and were not in the folder that it was converted from.
    """

    folder: str
    entries: list[Entry]
    is_checkpoint: bool
    weights: set[str]
    added: list[str] = field(default_factory=list)
