"""Arrays and torch tensors in a batch become tensors; its structure is kept.

Where no session is at hand (in worker processes) and where another thread is to transfer a batch,
batches are made of `BatchArray` instead, which becomes tensors later.
"""

from __future__ import annotations

import copy
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, MutableSequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from gt import _gt
from gt._gt import Tensor


class BatchArray(np.ndarray):
    """An array that stands for a tensor."""


class BFloat16Array(BatchArray):
    """An array of float32 that stands for a tensor of bfloat16, which NumPy does not know."""


class _Mode(threading.local):
    """What batches of this thread are made of."""

    arrays = False


_mode = _Mode()


def makes_arrays() -> bool:
    """Tell whether batches of this thread are made of arrays."""
    return _mode.arrays


@contextmanager
def arrays_only() -> Iterator[None]:
    """Have batches of this thread be made of arrays inside a block."""
    before, _mode.arrays = _mode.arrays, True
    try:
        yield
    finally:
        _mode.arrays = before


def is_torch(value: Any) -> bool:
    """Tell whether a value is a tensor of PyTorch, without importing it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def is_numeric(array: np.ndarray) -> bool:
    """Tell whether an array has numbers, and not strings or objects."""
    return array.dtype.kind in "biufc"


def is_bfloat16(value: Any) -> bool:
    """Tell whether a value is, or stands for, a tensor with numbers of bfloat16."""
    is_tensor = isinstance(value, Tensor) or is_torch(value)
    return isinstance(value, BFloat16Array) or (
        is_tensor and str(value.dtype).endswith(".bfloat16")
    )


def as_array(value: Any) -> np.ndarray:
    """Give the array of a NumPy value, a gt tensor or a torch tensor; bfloat16 becomes float32."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if is_torch(value):
        value = value.detach().cpu()
        return (value.float() if is_bfloat16(value) else value).numpy()
    return np.asarray(value)


def standing_for(array: np.ndarray, bfloat16: bool = False) -> BatchArray:
    """Give what stands for the tensor of an array."""
    return array.view(BFloat16Array if bfloat16 else BatchArray)


def finished(array: np.ndarray, bfloat16: bool = False) -> Any:
    """Give the tensor of an array, or what stands for it in this thread."""
    made = standing_for(array, bfloat16)
    return made if _mode.arrays else to_tensor(made)


def to_tensor(value: Any) -> Tensor:
    """Give the tensor of an array or of a torch tensor."""
    if is_bfloat16(value):
        return _gt.tensor(as_array(value), "bfloat16")
    return _gt.from_numpy(as_array(value))


def leaves(batch: Any) -> Iterator[Any]:
    """Give what is in a batch, without its dicts, lists and tuples."""
    if isinstance(batch, Mapping):
        for value in batch.values():
            yield from leaves(value)
    elif isinstance(batch, list | tuple):
        for value in batch:
            yield from leaves(value)
    else:
        yield batch


def rebuild(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Give a batch of the same dicts, lists and tuples in which every leaf is changed."""
    if isinstance(batch, Mapping):
        changed = {key: rebuild(value, change) for key, value in batch.items()}
        return of_kind(batch, changed)
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(rebuild(value, change) for value in batch))
    if isinstance(batch, list | tuple):
        values = [rebuild(value, change) for value in batch]
        return of_kind(batch, values)
    return change(batch)


def of_kind(given: Any, values: Any) -> Any:
    """Give a container of the type of `given` with other values; a plain one if it cannot be."""
    if type(given) in (dict, list):
        return values
    make: Callable[[Any], Any] = type(given)
    try:
        if isinstance(given, MutableMapping):
            mapping = copy.copy(given)
            mapping.update(values)
            return mapping
        if isinstance(given, MutableSequence):
            sequence = copy.copy(given)
            for place, value in enumerate(values):
                sequence[place] = value
            return sequence
        return make(values)
    except TypeError:
        return values


def to_tensors(batch: Any, everything: bool = False) -> Any:
    """Make tensors of what stands for them in a batch.

    Args:
        batch: anything; dicts, lists and tuples are looked through.
        everything: also of plain arrays of numbers and of torch tensors.
    """

    def change(leaf: Any) -> Any:
        if isinstance(leaf, BatchArray) or (everything and becomes_tensor(leaf)):
            return to_tensor(leaf)
        return leaf

    return rebuild(batch, change)


def becomes_tensor(leaf: Any) -> bool:
    """Tell whether a leaf is an array of numbers or a torch tensor."""
    return (isinstance(leaf, np.ndarray) and is_numeric(leaf)) or is_torch(leaf)


def to_arrays(batch: Any) -> Any:
    """Make what stands for tensors of the gt tensors in a batch, to send them elsewhere."""

    def change(leaf: Any) -> Any:
        return standing_for(as_array(leaf), is_bfloat16(leaf)) if isinstance(leaf, Tensor) else leaf

    return rebuild(batch, change)
