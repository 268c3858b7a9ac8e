"""Conversion of the arrays and torch tensors in a batch to tensors, keeping its structure.

In worker processes, which have no session, and where another thread transfers the batch, batches
contain `BatchArray` instead, which is converted to tensors later.
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
    """An array that is to become a tensor."""


class BFloat16Array(BatchArray):
    """A float32 array that is to become a bfloat16 tensor; NumPy has no bfloat16."""


class _Mode(threading.local):
    """Whether batches made in this thread contain arrays instead of tensors."""

    arrays = False


_mode = _Mode()


def makes_arrays() -> bool:
    """Return whether batches made in this thread contain arrays instead of tensors."""
    return _mode.arrays


@contextmanager
def arrays_only() -> Iterator[None]:
    """Make batches of arrays instead of tensors in this thread, within a `with` block."""
    before, _mode.arrays = _mode.arrays, True
    try:
        yield
    finally:
        _mode.arrays = before


def is_torch(value: Any) -> bool:
    """Return whether a value is a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def is_numeric(array: np.ndarray) -> bool:
    """Return whether an array contains numbers or bools, not strings or objects."""
    return array.dtype.kind in "biufc"


def is_bfloat16(value: Any) -> bool:
    """Return whether a value is, or is to become, a bfloat16 tensor."""
    is_tensor = isinstance(value, Tensor) or is_torch(value)
    return isinstance(value, BFloat16Array) or (
        is_tensor and str(value.dtype).endswith(".bfloat16")
    )


def as_array(value: Any) -> np.ndarray:
    """Return a NumPy value, gt tensor or torch tensor as an array; bfloat16 becomes float32."""
    if isinstance(value, Tensor):
        return value.detach().numpy()
    if is_torch(value):
        value = value.detach().cpu()
        return (value.float() if is_bfloat16(value) else value).numpy()
    return np.asarray(value)


def standing_for(array: np.ndarray, bfloat16: bool = False) -> BatchArray:
    """Return the array as a `BatchArray`, or a `BFloat16Array` if it is of bfloat16 values."""
    return array.view(BFloat16Array if bfloat16 else BatchArray)


def finished(array: np.ndarray, bfloat16: bool = False) -> Any:
    """Return the tensor of an array, or its `BatchArray` where this thread makes arrays."""
    made = standing_for(array, bfloat16)
    return made if _mode.arrays else to_tensor(made)


def to_tensor(value: Any) -> Tensor:
    """Return the tensor of an array or a torch tensor."""
    if is_bfloat16(value):
        return _gt.tensor(as_array(value), "bfloat16")
    return _gt.from_numpy(as_array(value))


def leaves(batch: Any) -> Iterator[Any]:
    """Yield the values in a batch that are not dicts, lists or tuples."""
    if isinstance(batch, Mapping):
        for value in batch.values():
            yield from leaves(value)
    elif isinstance(batch, list | tuple):
        for value in batch:
            yield from leaves(value)
    else:
        yield batch


def rebuild(batch: Any, change: Callable[[Any], Any]) -> Any:
    """Return a batch of the same structure, with `change` applied to each leaf."""
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
    """Return a container of the type of `given` with other values, or a plain one if it fails."""
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
    """Convert each `BatchArray` in a batch to a tensor.

    Args:
        batch: any value; dicts, lists and tuples are traversed.
        everything: whether to convert plain arrays of numbers and torch tensors too.
    """

    def change(leaf: Any) -> Any:
        if isinstance(leaf, BatchArray) or (everything and becomes_tensor(leaf)):
            return to_tensor(leaf)
        return leaf

    return rebuild(batch, change)


def becomes_tensor(leaf: Any) -> bool:
    """Return whether a leaf is an array of numbers or a torch tensor."""
    return (isinstance(leaf, np.ndarray) and is_numeric(leaf)) or is_torch(leaf)


def to_arrays(batch: Any) -> Any:
    """Convert the gt tensors in a batch to `BatchArray`s, to send them to another process."""

    def change(leaf: Any) -> Any:
        return standing_for(as_array(leaf), is_bfloat16(leaf)) if isinstance(leaf, Tensor) else leaf

    return rebuild(batch, change)
