"""Check that functions and methods take arrays of NumPy's and PyTorch's tensors for GT's tensors.

The arguments are the samples of PyTorch's database of operators. Each tensor among them is replaced
in turn by an array and by a tensor of PyTorch's; the result has to be that for a tensor of GT's.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import counterpart
import entries
import gt
import numpy as np
import torch
from convert import ToGt, tensors_in

#: The number of samples of an entry that are checked.
SAMPLES = 2

#: What takes the place of a tensor.
KINDS: dict[str, Callable[[torch.Tensor], Any]] = {
    "numpy": lambda tensor: tensor.detach().numpy().copy(),
    "torch": lambda tensor: tensor.detach().clone(),
}

#: The error for an array that a function would write into.
WRITTEN = "is written to"


def check(op: Any) -> list[str]:
    """Return the failures of an entry."""
    failures = []
    for sample in itertools.islice(_samples(op), SAMPLES):
        arguments = (sample.input, sample.args, sample.kwargs)
        for name, function, first in _forms(op, arguments):
            failures += _check_form(name, function, arguments, first)
    return failures


def compared(op: Any) -> int:
    """Return the number of calls with an array or a tensor of PyTorch's that an entry makes."""
    counted = 0
    for sample in itertools.islice(_samples(op), SAMPLES):
        arguments = (sample.input, sample.args, sample.kwargs)
        for _, function, first in _forms(op, arguments):
            if not isinstance(_result(function, arguments, {}), Exception):
                counted += len(KINDS) * len(tensors_in(arguments)[first:])
    return counted


def _samples(op: Any) -> Iterator[Any]:
    dtype = entries.dtype_of(op, torch.float32)
    return iter(op.sample_inputs("cpu", dtype, requires_grad=False))


def _forms(op: Any, arguments: Any) -> Iterator[tuple[str, Callable[..., Any], int]]:
    """Return the forms of an entry: name, function, and the first tensor that may be replaced."""
    names = {op.name.removeprefix("torch.")} | {alias.name for alias in op.aliases}
    for name in sorted(names):
        found = _found(name)
        if found is not None:
            yield name, found, 0
    for variant in (op.method_variant, op.inplace_variant):
        path = counterpart.path_of(variant) if variant is not None else None
        found = _found(path) if path and isinstance(arguments[0], torch.Tensor) else None
        if found is not None:
            yield path, found, 1


def _found(path: str) -> Any:
    try:
        return counterpart.find(path)
    except counterpart.Missing:
        return None


def _check_form(
    name: str, function: Callable[..., Any], arguments: Any, first: int
) -> Iterator[str]:
    want = _result(function, arguments, {})
    if isinstance(want, Exception):
        return  # Other tests compare what GT's tensors give.
    for place, tensor in enumerate(tensors_in(arguments)[first:], first):
        for kind, make in KINDS.items():
            given = _result(function, arguments, {id(tensor): make(tensor)})
            problem = difference(given, want)
            if problem:
                yield f"{name}, tensor {place} from {kind}: {problem}"


class Replacing(ToGt):
    """Converts arguments to GT's, and some tensors to others."""

    def __init__(self, replaced: dict[int, Any]):
        super().__init__(grad=False)
        self.replaced = replaced

    def _leaf(self, value: Any) -> Any:
        return self.replaced[id(value)] if id(value) in self.replaced else super()._leaf(value)


def _result(function: Callable[..., Any], arguments: Any, replaced: dict[int, Any]) -> Any:
    """Return the values of a call, or its exception."""
    try:
        given, args, kwargs = Replacing(replaced)(arguments)
        gt.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return values(function(given, *args, **kwargs))
    except Exception as error:
        return error


def values(result: Any) -> Any:
    """Return a result with arrays of the tensors' values; a result of another type stays."""
    if isinstance(result, gt.Tensor):
        return ("tensor", str(result.dtype), result.detach().numpy())
    if isinstance(result, (list, tuple)):
        return [values(item) for item in result]
    return (type(result).__name__, str(result))


def difference(given: Any, want: Any) -> str | None:
    """Return what differs between the results of two calls, or None."""
    if isinstance(given, Exception):
        text = f"{type(given).__name__}: {given}".splitlines()[0]
        return None if WRITTEN in text else text
    if isinstance(want, list):
        if not isinstance(given, list) or len(given) != len(want):
            return f"{type(given).__name__} for a list of {len(want)}"
        found = (difference(one, other) for one, other in zip(given, want, strict=True))
        return next((problem for problem in found if problem), None)
    if given[:2] != want[:2]:
        return f"{given[:2]} for {want[:2]}"
    if want[0] == "tensor" and not np.array_equal(given[2], want[2], equal_nan=True):
        return "the values differ"
    return None
