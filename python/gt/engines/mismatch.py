"""Differences between compiled plans and their operations, as workers write them to files.

A worker compares what an engine has compiled with the plan's operations run one by one. Where they
differ it writes a file, in the directory `GT_MISMATCH_DIR` or `gt-mismatches` among the temporary
files. It is an archive that `np.load` reads:

- `plan.txt`: the plan and what differs, to be read.
- `plan.json`: `format` (1), `engine` (its name), `difference` (in words), `inputs`, `steps` and
  `outputs`. Values are numbered: the inputs first, then one for each step.

  - An input is `{"tensor": {"dtype", "shape"}}` or `{"number": x}`.
  - A step has its `operation`, its `operands` (`{"value": n}` or `{"constant": x}`), `attributes`,
    `output` (dtype and shape) and `results`, how many its operation gives. What it gives beyond the
    first are steps `further`, whose `index` says which. Of a slice whose starts vary the attribute
    `starts` is missing: they are the last operands.
  - `outputs` are numbers of values.
- `input_0`, `expected_0`, `given_0` and so on: the values of inputs, by their number, of what the
  operations gave, and of what the compiled plan gave (nothing if it failed). bfloat16 stands as
  uint16: the dtypes in `plan.json` tell.
"""

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from gt.engines.engine import Engine, Meta, Plan, Signature, Step

_RANDOM = frozenset(["rand", "randn", "randint"])
#: How much values may differ by that are not compared bit for bit, relative to the largest.
_TOLERANCE = {
    "float16": 1e-2,
    "bfloat16": 5e-2,
    "float32": 1e-4,
    "float64": 1e-11,
    "complex64": 1e-4,
    "complex128": 1e-11,
}


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor's values with their meta; bfloat16 ones are uint16."""

    meta: Meta
    values: np.ndarray

    def to_bytes(self) -> bytearray:
        """Give the values as `Engine.create` takes them."""
        return bytearray(np.ascontiguousarray(self.values).tobytes())

    def as_numbers(self) -> np.ndarray:
        """Give the values as numbers to compare: bfloat16 as float32."""
        if self.meta.dtype == "bfloat16":
            return (self.values.astype("uint32") << 16).view("float32")
        return self.values


@dataclass(frozen=True, slots=True)
class Difference:
    """An output of one way to run a plan that is not what the operations gave.

    `index` is the element that is farthest off, `given` and `expected` are its values, `count` says
    how many elements are off by more than rounding is expected to do.
    """

    way: str
    output: int
    index: tuple[int, ...]
    given: Any
    expected: Any
    count: int

    def __str__(self) -> str:
        """Say where, and what is there."""
        place = f"output {self.output} at {list(self.index)}"
        return f"{self.way}: {place}: {self.given} instead of {self.expected} ({self.count} wrong)"


def load(path: str | os.PathLike) -> tuple[Plan, list, list[Array], list[Array]]:
    """Read a file: the plan, the values that it takes (`Array` or numbers), and what was expected
    and given.

    Constants and random numbers are inputs of the plan, as engines get it.

    Raises:
        ValueError: The file is not of a format that is known.

    Example:
        >>> plan, values, expected, given = load("native-0123456789abcdef-77.npz")
    """
    with np.load(path) as archive:
        written = json.loads(archive["plan.json"])
        if written.get("format") != 1:
            raise ValueError(f"{path} has the format {written.get('format')!r}, expected 1")
        arrays = {name: archive[name] for name in archive.files if not name.startswith("plan.")}
    reader = _Reader(written, arrays)
    plan = reader.plan()
    metas = reader.output_metas()
    listed = {
        kind: [
            Array(meta, arrays[f"{kind}_{index}"])
            for index, meta in enumerate(metas)
            if f"{kind}_{index}" in arrays
        ]
        for kind in ("expected", "given")
    }
    return plan, reader.values, listed["expected"], listed["given"]


class _Reader:
    """Numbers the values anew: after the inputs constants, then random numbers, then the steps."""

    def __init__(self, written: dict, arrays: dict[str, np.ndarray]):
        self.written = written
        self.steps: list[dict] = written["steps"]
        self.count = len(written["inputs"])
        self.inputs: list = []
        self.values: list = []
        for index, given in enumerate(written["inputs"]):
            if "number" in given:
                self.take(type(given["number"]), given["number"])
            else:
                meta = _meta(given["tensor"])
                self.take(meta, Array(meta, arrays[f"input_{index}"]))

    def take(self, described: Any, value: Any) -> int:
        """Add an input; give its number."""
        self.inputs.append(described)
        self.values.append(value)
        return len(self.inputs) - 1

    def plan(self) -> Plan:
        """Give the plan as engines get it."""
        operands = [
            [self._operand(operand, step) for operand in step["operands"]] for step in self.steps
        ]
        self.numbers: dict[int, int] = dict(enumerate(range(self.count)))
        for index, step in enumerate(self.steps):
            if step["operation"] in _RANDOM:
                array = self._draw(step)
                self.numbers[self.count + index] = self.take(array.meta, array)
        made: list[Step] = []
        tuples: dict[int, int] = {}
        for index, (step, given) in enumerate(zip(self.steps, operands, strict=True)):
            if step["operation"] in _RANDOM:
                continue
            output, name = _meta(step["output"]), step["operation"]
            known = tuples if name == "further" else self.numbers
            places = [known[old] if old is not None else new or 0 for old, new in given]
            attributes = {key: _tuple(value) for key, value in step["attributes"].items()}
            made.append(Step(name, tuple(places), attributes, output))
            number = len(self.inputs) + len(made) - 1
            if step["results"] > 1:
                # What it gives is a tuple there, of which each result is taken.
                tuples[self.count + index] = number
                made.append(Step("further", (number,), {"index": 0}, output))
                number += 1
            self.numbers[self.count + index] = number
        outputs = tuple(self.numbers[output] for output in self.written["outputs"])
        return Plan(tuple(self.inputs), tuple(made), outputs)

    def _operand(self, operand: dict, step: dict) -> tuple[int | None, int | None]:
        """Give a value's old number, or the new one of a constant."""
        if "value" in operand:
            return operand["value"], None
        if step["operation"] in _RANDOM:
            return None, None
        return None, self.take(operand["constant"], operand["constant"])

    def _draw(self, step: dict) -> Array:
        from gt.engines import native

        meta = _meta(step["output"])
        numbers = [
            self.values[operand["value"]] if "value" in operand else operand["constant"]
            for operand in step["operands"]
        ]
        given = step["attributes"].items()
        attributes = {key: _tuple(value) for key, value in given if key != "dtype"}
        signature = Signature(step["operation"], tuple(map(type, numbers)), meta.dtype)
        drawn = native.computes(
            signature, lambda value: value, lambda data, dtype, shape: bytes(data)
        )(*numbers, **attributes)
        dtype = "uint16" if meta.dtype == "bfloat16" else meta.dtype
        return Array(meta, np.frombuffer(drawn, dtype).reshape(meta.shape))

    def output_metas(self) -> list[Meta]:
        """Give the metas of the outputs."""
        metas = []
        for output in self.written["outputs"]:
            of_input = output < self.count
            of = self.written["inputs"][output]["tensor"] if of_input else None
            metas.append(_meta(of or self.steps[output - self.count]["output"]))
        return metas


def replay(path: str | os.PathLike, engine: Engine) -> list[Difference]:
    """Run a file's plan on an engine, step by step and compiled, and say what differs from what was
    expected.

    The ways are `"step by step"`, `"compiled"`, and `"compiled, again"`: the same once more, as
    some mistakes show only then. Integers and bools are compared exactly; floats up to a tolerance
    that is coarser than the worker's bounds.

    Raises:
        ValueError: The file is not of a format that is known.

    Example:
        >>> for difference in replay("native-0123456789abcdef-77.npz", NumPyEngine()):
        ...     print(difference)
    """
    plan, values, expected, _ = load(path)

    def given() -> list:
        return [_create(engine, value) if isinstance(value, Array) else value for value in values]

    ways = [("step by step", lambda values: engine.run(plan, values))]
    compiled = engine.compile(plan)
    if compiled is not None:
        ways += [("compiled", compiled), ("compiled, again", compiled)]
    found = []
    for way, run in ways:
        for output, (tensor, want) in enumerate(zip(run(given()), expected, strict=True)):
            difference = _compare(way, output, _read(engine, tensor), want)
            found += [difference] if difference else []
    return found


def _create(engine: Engine, array: Array) -> Any:
    return engine.create(memoryview(array.to_bytes()), array.meta.dtype, array.meta.shape)


def _read(engine: Engine, tensor: Any) -> Array:
    meta = engine.describe(tensor)
    dtype = "uint16" if meta.dtype == "bfloat16" else meta.dtype
    flat = np.frombuffer(bytes(engine.read(tensor)), dtype)
    return Array(meta, flat.reshape(meta.shape))


def _compare(way: str, output: int, given: Array, expected: Array) -> Difference | None:
    if given.meta != expected.meta:
        return Difference(way, output, (), given.meta, expected.meta, 0)
    a, b = given.as_numbers(), expected.as_numbers()
    with np.errstate(all="ignore"):
        same = (a == b) | ((a != a) & (b != b))
        finite = np.abs(b[np.isfinite(b)]) if b.dtype.kind in "fc" else np.empty(0)
        limit = _TOLERANCE.get(given.meta.dtype, 0) * (finite.max() if finite.size else 0)
        apart = np.abs(np.subtract(a, b, dtype="complex128" if a.dtype.kind == "c" else "float64"))
    wrong = ~same & ~(apart <= limit)
    if not wrong.any():
        return None
    farthest = np.argmax(np.where(wrong, np.nan_to_num(apart, nan=np.inf), -1))
    index = tuple(int(place) for place in np.unravel_index(farthest, wrong.shape))
    return Difference(way, output, index, a[index], b[index], int(wrong.sum()))


def _meta(written: dict) -> Meta:
    return Meta(written["dtype"], tuple(written["shape"]))


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
