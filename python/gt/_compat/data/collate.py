"""Conversion of samples to batches: `default_collate` and `default_convert`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import gt
from gt._arguments import brief
from gt._gt import Tensor

from . import convert

_EXPECTED = "batch must contain tensors, numpy arrays, numbers, dicts or lists; found"


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate samples into a batch: numbers and arrays are stacked along a new first axis.

    Tensors, arrays and PyTorch tensors become a tensor of the same dtype, integers one of int64,
    Python floats one of float64. Strings and bytes stay as they are. Dicts, lists and named tuples
    of these become one container of batches; a tuple becomes a list, as in PyTorch.

    Args:
        batch: the samples, all of the same structure.

    Raises:
        IndexError: there are no samples.
        KeyError: a dict lacks a key of the first one.
        TypeError: a sample has or contains an unsupported type.
        RuntimeError: arrays differ in shape, or lists in length.

    >>> gt.data.default_collate([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}])
    {'x': tensor([1, 2], dtype=int64), 'y': ['a', 'b']}
    """
    if not isinstance(batch, Sequence | np.ndarray | Tensor):
        raise TypeError(f"default_collate: batch is {brief(batch)}, expected a list of samples")
    if not len(batch):
        raise IndexError("default_collate: the batch has no samples, expected one or more")
    first = batch[0]
    if isinstance(first, Tensor) and not convert.makes_arrays():
        _check_shapes(batch)
        return gt.stack(list(batch))
    if isinstance(first, Tensor) or convert.is_torch(first):
        stacked = _stack([convert.as_array(value) for value in batch])
        return convert.finished(stacked, convert.is_bfloat16(first))
    if isinstance(first, np.ndarray):
        if not convert.is_numeric(first):
            raise TypeError(f"default_collate: {_EXPECTED} {first.dtype}")
        stacked = _stack([np.asarray(value) for value in batch])
        return convert.finished(stacked, convert.is_bfloat16(first))
    if isinstance(first, np.bool_ | np.number):
        return convert.finished(np.asarray(batch))
    if isinstance(first, float):
        return convert.finished(np.asarray(batch, np.float64))
    if isinstance(first, int):
        return convert.finished(_integers(batch))
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        columns = {key: default_collate(_column(batch, key)) for key in first}
        return convert.of_kind(first, columns)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError(
                "each element in list of batch should be of equal size; "
                f"their lengths are {[len(sample) for sample in batch]}"
            )
        values = [default_collate(column) for column in zip(*batch, strict=True)]
        return values if isinstance(first, tuple) else convert.of_kind(first, values)
    raise TypeError(f"default_collate: {_EXPECTED} {type(first)}")


def _column(batch: Sequence[Any], key: Any) -> list[Any]:
    """Return what each sample, a dict, has under a key."""
    for number, sample in enumerate(batch):
        if key not in sample:
            raise KeyError(
                f"default_collate: sample {number} of the batch has no key {key!r}, which the "
                "first sample has"
            )
    return [sample[key] for sample in batch]


def default_convert(data: Any) -> Any:
    """Convert the arrays in a sample to tensors and keep its structure, but tuples become lists.

    Numbers, strings and values of other types stay as they are.

    >>> gt.data.default_convert({"x": np.array([1, 2]), "y": 3})
    {'x': tensor([1, 2], dtype=int64), 'y': 3}
    """
    if convert.is_torch(data):
        return convert.finished(convert.as_array(data), convert.is_bfloat16(data))
    if isinstance(data, np.ndarray | np.bool_ | np.number):
        array = np.asarray(data)
        if not convert.is_numeric(array):
            return data
        return convert.finished(array, convert.is_bfloat16(data))
    if isinstance(data, Mapping):
        return convert.of_kind(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        values = [default_convert(value) for value in data]
        return values if isinstance(data, tuple) else convert.of_kind(data, values)
    return data


def _integers(batch: Sequence[Any]) -> np.ndarray:
    """Return the array of Python numbers of which the first is an int or bool."""
    array = np.asarray(batch)
    if array.dtype.kind in "iu":
        return array.astype(np.int64, copy=False)
    # As in PyTorch, a mixture of ints and floats has the default dtype.
    return array.astype(gt.get_default_dtype().name) if array.dtype.kind == "f" else array


def _check_shapes(values: Sequence[Any]) -> None:
    for place, value in enumerate(values):
        if value.shape != values[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(values[0].shape)} at "
                f"entry 0 and {list(value.shape)} at entry {place}\n"
                "  hint: pass a collate_fn that pads them"
            )


def _stack(arrays: list[np.ndarray]) -> np.ndarray:
    """Stack arrays, with PyTorch's type promotion: dtypes of the highest kind decide.

    The kinds are bool, integer, float and complex.

    Raises:
        RuntimeError: the shapes differ.
    """
    _check_shapes(arrays)
    dtypes = {array.dtype for array in arrays}
    if len(dtypes) == 1:
        return np.stack(arrays)
    kinds = ["biufc".index(dtype.kind) for dtype in dtypes]
    deciding = [dtype for dtype, kind in zip(dtypes, kinds, strict=True) if kind == max(kinds)]
    if max(kinds) in (1, 2):
        deciding = list(dtypes)
    return np.stack(arrays).astype(np.result_type(*deciding))
