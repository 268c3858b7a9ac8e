"""The tasks of a check, which are performed independently."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gt.engines.check.aside import Output, forks
from gt.engines.check.cases import cases_of
from gt.engines.check.operations import Examiner, described
from gt.engines.check.programs import PROGRAMS
from gt.engines.check.reference import results
from gt.engines.check.report import Finding
from gt.engines.check.running import Runner
from gt.engines.check.samples import OPERATIONS, draw
from gt.engines.check.speed import timings
from gt.engines.check.values import DTYPES, put, to_array, to_bytes
from gt.engines.engine import Engine, Meta
from gt.engines.native import DRAWN

_SHAPES = [(), (1,), (0,), (2, 0, 3), (2, 3), (1, 5, 1), (7,), (15,), (17, 2), (33,)]
_SEVERAL_RESULTS = "further"  # takes another operation's results, and is tried with that operation


@dataclass(frozen=True)
class Options:
    """How much is checked: at most `samples` cases per operation, chosen by `seed`."""

    samples: int | None = None
    seed: int = 0


#: Receives a message: its kind and contents.
Send = Callable[[str, Any], None]


def names() -> list[str]:
    """Return the names of all tasks, in order."""
    operations = sorted(OPERATIONS.keys() - {_SEVERAL_RESULTS})
    return ["values", *operations, *(f"plan: {name}" for name in PROGRAMS), "speed"]


def patience(name: str) -> float:
    """Return the factor by which a task's time limit is extended: compilers are slow."""
    return 12 if name.startswith("plan: ") else 6 if name == "speed" else 1


def perform(
    engine: Engine, name: str, options: Options, send: Send, output: Output | None = None
) -> None:
    """Perform a task; send an "at" message before each step, then its findings and results."""
    before = forks()
    try:
        if name in OPERATIONS:
            _operation(engine, name, options, send)
        elif name == "values":
            _values(engine, send)
        elif name == "speed":
            for timing in timings(engine, lambda text: send("at", text)):
                send("timing", timing)
        else:
            _plan(engine, name, send)
    except Exception as error:
        send("finding", Finding("wrong", name, f"raises {described(error)}"))
    said = output.new().strip() if output else ""
    if said:
        send("finding", Finding("warning", name, f"prints: {_shortened(said)}"))
    if forks() > before:
        send("finding", Finding("warning", name, "forks the process"))


def _shortened(text: str) -> str:
    first, *more = text.splitlines()
    return f"{first[:200]} (and {len(more)} lines more)" if more else first[:200]


def _operation(engine: Engine, name: str, options: Options, send: Send) -> None:
    if name in DRAWN:
        if engine.draws:
            _draws(engine, name, send)
        return
    if not engine.lowers(name):
        is_primitive = OPERATIONS[name]["primitive"]
        send("natively" if is_primitive else "expanded", name)
        if not is_primitive:
            return
    examiner = Examiner(engine, lambda it: send("finding", it), lambda text: send("at", text))
    count = 0
    for case in cases_of(name, options.samples, options.seed):
        count += examiner.examine(case)
        if examiner.is_missing:
            break
    examiner.finish()
    send("cases", (name, count))


def _draws(engine: Engine, name: str, send: Send) -> None:
    """Compare the bits of random numbers, including those of shards of a larger tensor."""
    count = 0
    for case in cases_of(name):
        send("at", case.text)
        count += 1
        (want,) = results(name, case.operands, case.dtypes, case.attributes)
        meta = Meta(case.attributes["dtype"], want.shape)
        made = engine.draw(name, tuple(case.operands), meta, case.attributes["part"])
        if bytes(engine.read(made)) != to_bytes(want, meta.dtype):
            text = "draws other bits than the native engine"
            send("finding", Finding("wrong", name, text, case.text))
    send("cases", (name, count))


def _values(engine: Engine, send: Send) -> None:
    """Check that tensors keep their dtype, shape and values through `create` and `read`."""
    known: dict[int, tuple[str, Any]] = {}
    for dtype in DTYPES:
        for shape in _SHAPES:
            text = f"{dtype} {shape}"
            send("at", text)
            values = draw({"dtype": dtype, "shape": shape, "low": 0, "high": 99}, seed=1)
            found = _in_and_out(engine, values, dtype)
            if found:
                send("finding", Finding("wrong", "values", found, text))
        own = getattr(put(engine, values, dtype), "dtype", None)
        if own is not None and known.setdefault(id(own), (dtype, own))[0] != dtype:
            text = f"tensors of {known[id(own)][0]} and {dtype} have the same `dtype`"
            send(
                "finding",
                Finding("wrong", "values", f"{text}, by which GT distinguishes dtypes", dtype),
            )
    if not isinstance(engine.name, str) or not math.isfinite(engine.rate) or engine.rate < 1:
        text = f"name is {engine.name!r} and rate {engine.rate!r}, expected a string and a number"
        send("finding", Finding("wrong", "values", text))
    engine.release_memory()


def _in_and_out(engine: Engine, values: np.ndarray, dtype: str) -> str:
    meta = Meta(dtype, values.shape)
    try:
        tensor = put(engine, values, dtype)
        found = engine.describe(tensor)
        if (found.dtype, tuple(found.shape)) != (meta.dtype, meta.shape):
            return f"describe returns {found.dtype} {found.shape}"
        if to_bytes(to_array(engine.read(tensor), meta), dtype) != to_bytes(values, dtype):
            return "read returns other values than create received"
    except Exception as error:
        return f"raises {described(error)}"
    return ""


def _plan(engine: Engine, name: str, send: Send) -> None:
    program = PROGRAMS[name.removeprefix("plan: ")](engine)

    def wrong(about: str, text: str) -> None:
        send("finding", Finding("wrong", name, text, about))

    runner = Runner(engine, program, lambda text: send("at", text), wrong)
    if runner.can_run():
        runner.run_plainly()
        if runner.compile():
            send("compiled", name)


def chosen(only: Sequence[str] | None) -> list[str]:
    """Return the tasks of these names, or all. Raises `ValueError` for an unknown name."""
    every = names()
    for name in only or ():
        if name not in every:
            raise ValueError(f"there is nothing named '{name}' to check: see --list")
    return [name for name in every if only is None or name in only]
