"""Checks of one operation of an engine: its results for each case, and its side effects."""

import contextlib
import gc
import os
import sys
import traceback
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gt.engines.check import reference
from gt.engines.check.aside import leave_copy
from gt.engines.check.cases import Case
from gt.engines.check.report import Finding
from gt.engines.check.samples import OPERATIONS
from gt.engines.check.values import difference, kind_of, put, to_array
from gt.engines.engine import Engine, Function, Meta, Signature, Step

#: Operation -> numbers of results that are not unique, and whose values are not compared.
_FREE = {"_linalg_eig": {1}}

_NUMBERS = bool | int | float


class Missing(Exception):
    """The engine has no function for an operation."""


class Examiner:
    """Calls an engine's lowerings of one operation as a worker would.

    Passes each finding to `found`. Before each case, its text is passed to the other callback.
    """

    def __init__(
        self, engine: Engine, found: Callable[[Finding], None], tell: Callable[[str], None]
    ):
        self.engine = engine
        self.found = found
        self.tell = tell
        self.functions: dict[Signature, Function] = {}
        #: Whether the engine cannot lower the operation.
        self.is_missing = False
        #: How many more calls are followed by one with other values, to find reused results.
        self.again = 2
        #: The last call, whose results are checked again after the next call.
        self.last: _Call | None = None

    def examine(self, case: Case) -> bool:
        """Try a case; return whether it is valid."""
        given = (case.operation, case.operands, case.dtypes, case.attributes)
        try:
            metas, words = reference.metas(*given), ""
            wanted = reference.results(*given)
            if case.may_be_none and any(meta.bytes == 0 for meta in metas):
                return False
        except Exception as error:
            if case.may_be_none:
                return False
            if not case.is_wrong:
                raise
            wanted, words = [], str(error)
        self.tell(case.text)
        try:
            self._try(case, metas, wanted, words)
        except Missing as missing:
            self.is_missing = True
            self._say("missing", case, str(missing))
        except Exception as error:
            self._say("wrong", case, described(error))
        return True

    def finish(self) -> None:
        """Check the last call again."""
        if self.last is not None:
            last, self.last = self.last, None
            self._look_again(last)

    def _say(self, kind: str, case: Case, text: str) -> None:
        self.found(Finding(kind, case.operation, text, case.text))

    def _try(self, case: Case, metas: list[Meta], wanted: list[np.ndarray], words: str) -> None:
        function = self._function(case.signature(metas[0].dtype))
        call = _Call(case, self._operands(case))
        before = [_read(self.engine, value) for value in call.values]
        try:
            made = function(*call.values, **case.named)
        except BaseException as error:
            leave_copy()
            self._failed(case, call.values, error, words, metas[0])
            return
        leave_copy()
        if case.is_wrong:
            self._say("wrong", case, f"returns a result, expected the error: {words}")
            return
        if [_read(self.engine, value) for value in call.values] != before:
            self._say("wrong", case, "writes to an operand")
        results = self._results(case, made, len(wanted))
        del made
        for number, (result, want) in enumerate(zip(results, wanted, strict=True)):
            text = self._compared(case, number, result, metas[number], want)
            if text:
                which = f"result {number} " if len(wanted) > 1 else ""
                self._say("wrong", case, which + text)
                return
        call.results, call.bytes = results, [_read(self.engine, result) for result in results]
        self.finish()
        self.last = call
        if case.plain and self.again > 0:
            self.again -= 1
            self._call_again(case, function)
            self._look_for_changes(call)

    def _call_again(self, case: Case, function: Function) -> None:
        """Call the function with flipped values: earlier results must not change."""
        turned = [np.flip(it) if isinstance(it, np.ndarray) else it for it in case.operands]
        values = [put(self.engine, *pair) for pair in zip(turned, case.dtypes, strict=True)]
        with contextlib.suppress(Exception):
            function(*values, **case.named)

    def _function(self, signature: Signature) -> Function:
        if signature not in self.functions:
            try:
                self.functions[signature] = self.engine.lowering(signature)
            except Exception as error:
                if any(known.operation == signature.operation for known in self.functions):
                    raise
                raise Missing(f"lowering raises {described(error)}") from error
        return self.functions[signature]

    def _operands(self, case: Case) -> list[Any]:
        values = [put(self.engine, *pair) for pair in zip(case.operands, case.dtypes, strict=True)]
        return [
            self._turned(value, dtype) if case.are_views and np.ndim(value) > 1 else tensor
            for tensor, value, dtype in zip(values, case.operands, case.dtypes, strict=True)
        ]

    def _turned(self, value: np.ndarray, dtype: str) -> Any:
        """Return an operand as a view that the engine's own `permute` made."""
        axes = tuple(range(value.ndim))
        tensor = put(self.engine, np.ascontiguousarray(np.moveaxis(value, -1, 0)), dtype)
        turn = self.engine.lowering(Signature("permute", (kind_of(value, dtype),), dtype))
        return turn(tensor, dims=(*axes[1:], 0))

    def _failed(
        self, case: Case, values: list[Any], error: BaseException, words: str, output: Meta
    ) -> None:
        if not isinstance(error, Exception):
            self._say("wrong", case, f"raises {type(error).__name__}, which is no error")
        elif not case.is_wrong:
            self._say("wrong", case, f"raises {described(error)}")
        else:
            step = Step(case.operation, (), case.attributes, output)
            cause = self.engine.cause(error, step, values)
            if str(cause) != words:
                self._say("wrong", case, f"raises {described(cause)}\nexpected: {words}")

    def _results(self, case: Case, made: Any, count: int) -> list[Any]:
        if not OPERATIONS[case.operation]["several"]:
            if made is None:
                raise TypeError("returns None")
            return [made]
        if not isinstance(made, tuple):
            raise TypeError(f"returns {type(made).__name__}, expected a tuple of {count} results")
        if len(made) != count:
            raise ValueError(f"returns {len(made)} results, expected {count}")
        return list(made)

    def _compared(
        self, case: Case, number: int, result: Any, meta: Meta, want: np.ndarray
    ) -> str | None:
        found = self.engine.describe(result)
        if (found.dtype, tuple(found.shape)) != (meta.dtype, meta.shape):
            return f"is {found.dtype} {found.shape}, expected {meta.dtype} {meta.shape}"
        shape = getattr(result, "shape", meta.shape)
        if isinstance(shape, tuple) and tuple(shape) != meta.shape:
            return f"has the shape {tuple(shape)}, but is described as {meta.shape}"
        got = to_array(self.engine.read(result), meta)
        if number in _FREE.get(case.operation, ()):
            return None
        return difference(got, want, case.operation, meta.dtype)

    def _look_again(self, call: "_Call") -> None:
        """Check that results are unchanged, and that the engine keeps no operand or result."""
        self._look_for_changes(call)
        kept = call.release()
        if kept:
            self._say("warning", call.case, f"keeps {kept} after the call: its memory is not freed")

    def _look_for_changes(self, call: "_Call") -> None:
        if [_read(self.engine, result) for result in call.results] != call.bytes:
            self._say("wrong", call.case, "returns a tensor that a later call changes")


class _Call:
    """A call: its operands with their reference counts, and its results."""

    def __init__(self, case: Case, values: list[Any]):
        self.case = case
        self.values = values
        self.counts = self._references()
        self.results: list[Any] = []
        self.bytes: list[Any] = []

    def release(self) -> str:
        """Drop all references; return what is still alive ("an operand", "a result", or "")."""
        watched = list(_watched(self.results, self.values))
        self.results.clear()
        if self._are_kept() or any(seen() is not None for seen in watched):
            gc.collect()
        if self._are_kept():
            return "an operand"
        self.values.clear()
        return "a result" if any(seen() is not None for seen in watched) else ""

    def _are_kept(self) -> bool:
        pairs = zip(self._references(), self.counts, strict=True)
        return any(now > before for now, before in pairs)

    def _references(self) -> list[int]:
        """Return the operands' reference counts, without numbers: the interpreter shares them."""
        return [sys.getrefcount(it) for it in self.values if not isinstance(it, _NUMBERS)]


def _watched(results: list[Any], operands: list[Any]) -> Iterator[weakref.ref[Any]]:
    for result in results:
        if not any(result is operand for operand in operands):
            try:
                yield weakref.ref(result)
            except TypeError:
                continue  # its type does not support weak references


def _read(engine: Engine, value: Any) -> Any:
    """Return a tensor's bytes, or a number unchanged."""
    return value if isinstance(value, _NUMBERS) else bytes(engine.read(value))


def described(error: BaseException) -> str:
    """Describe an error, with the innermost source line outside this package."""
    lines = str(error).strip().splitlines() or [""]
    if len(lines) > 4:
        lines = [lines[0], "...", lines[-1]]
    text = f"{type(error).__name__}: " + "\n".join(lines)
    frames = traceback.extract_tb(error.__traceback__)
    here = os.path.dirname(__file__)
    own = [frame for frame in frames if os.path.dirname(frame.filename) != here]
    return f"{text}\n({own[-1].filename}:{own[-1].lineno})" if own else text
