"""The cases that an operation is tried on: operands, attributes, and the expected outcome."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from gt.engines.check import special, wrong
from gt.engines.check.samples import OPERATIONS, drawn, inputs, of_odd_lengths
from gt.engines.check.values import kind_of, meta_of
from gt.engines.engine import Meta, Signature


@dataclass(frozen=True, eq=False)
class Case:
    """An operation with its operands: arrays with their dtypes, or numbers with None as dtype."""

    operation: str
    operands: list[Any]
    dtypes: list[Any]
    attributes: dict[str, Any]
    #: A prefix for reports, such as "odd length"; empty for declared samples.
    about: str = ""
    #: Whether the native engine may reject the operands; the case is skipped then.
    may_be_none: bool = False
    #: Whether the native engine rejects the operands, so that the engine must too.
    is_wrong: bool = False
    #: Whether operands are permuted views whose last axis is the outermost in memory.
    are_views: bool = False

    @property
    def plain(self) -> bool:
        """Return whether this is one of the operation's declared samples."""
        return not self.about

    @property
    def dtype(self) -> str:
        """Return the dtype of the first tensor, or else of the result."""
        return next((dtype for dtype in self.dtypes if dtype), self.attributes.get("dtype", ""))

    @property
    def text(self) -> str:
        """Return a description of the case: its operands and attributes."""
        operands = []
        for value, dtype in zip(self.operands, self.dtypes, strict=True):
            meta = meta_of(value, dtype)
            operands.append(f"{meta.dtype} {meta.shape}" if isinstance(meta, Meta) else str(value))
        told = [f"{name}={value}" for name, value in self.attributes.items() if name != "part"]
        text = ", ".join([*operands, *told])
        return f"{self.about}: {text}" if self.about else text

    @property
    def named(self) -> dict[str, Any]:
        """Return the attributes that a worker passes: all but the dtype."""
        return {name: value for name, value in self.attributes.items() if name != "dtype"}

    def signature(self, output: str) -> Signature:
        """Return the signature that the engine has to lower."""
        kinds = map(kind_of, self.operands, self.dtypes)
        return Signature(self.operation, tuple(kinds), output)


def cases_of(operation: str, most: int | None = None, seed: int = 0) -> list[Case]:
    """Return an operation's cases, or a random sample of at most `most` of them."""
    found = list(_all(operation))
    if most is not None and len(found) > most:
        chosen = random.Random(f"{seed}/{operation}").sample(range(len(found)), most)
        found = [found[number] for number in sorted(chosen)]
    return found


def _all(operation: str) -> Iterator[Case]:
    viewed = False
    for index in range(len(OPERATIONS[operation]["samples"])):
        operands, dtypes, attributes = inputs(operation, index)
        attributes = _as_a_worker_gives(attributes)
        yield Case(operation, operands, dtypes, attributes)
        if not viewed and any(np.ndim(operand) > 1 for operand in operands):
            viewed = True
            yield Case(operation, operands, dtypes, attributes, "views", are_views=True)
    for number, sample in enumerate(of_odd_lengths(operation)):
        operands, dtypes = drawn(sample, f"{operation}/odd/{number}")
        attributes = _as_a_worker_gives(sample["attributes"])
        yield Case(operation, operands, dtypes, attributes, "odd length", may_be_none=True)
    yield from _by_operation(False).get(operation, ())
    yield from _by_operation(True).get(operation, ())


def _as_a_worker_gives(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes as a worker passes them: dtypes as names, and lists as tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else getattr(value, "name", value)
        for name, value in attributes.items()
    }


@cache
def _by_operation(is_wrong: bool) -> dict[str, list[Case]]:
    about = "wrong value" if is_wrong else "special values"
    found: dict[str, list[Case]] = {}
    for operation, given, attributes in (wrong if is_wrong else special).cases():
        pairs = [operand if isinstance(operand, tuple) else (operand, None) for operand in given]
        operands, dtypes = [value for value, _ in pairs], [dtype for _, dtype in pairs]
        given_attributes = _as_a_worker_gives(attributes)
        case = Case(operation, operands, dtypes, given_attributes, about, is_wrong=is_wrong)
        found.setdefault(operation, []).append(case)
    return found
