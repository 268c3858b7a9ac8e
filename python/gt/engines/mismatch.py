"""Files in which workers record differences between compiled plans and single operations.

A worker compares an engine's compiled plan with the plan's operations run one by one. If they
differ it writes a file to the directory `GT_MISMATCH_DIR`, or to `gt-mismatches` in the directory
for temporary files. The file is an archive that `np.load` reads:

- `plan.txt`: the plan and the difference as human-readable text.
- `plan.json`: `format` (1), `engine` (its name), `difference` (in words), `inputs`, `steps` and
  `outputs`. Values are numbered: the inputs first, then one for each step.

  - An input is `{"tensor": {"dtype", "shape"}}` or `{"number": x}`.
  - A step has its `operation`, its `operands` (`{"value": n}` or `{"constant": x}`), `attributes`,
    `output` (dtype and shape) and `results`, the number of results of its operation. Results after
    the first are steps `further` with an `index`. If the starts of a slice vary, the attribute
    `starts` is absent: they are the last operands.
  - `outputs` are numbers of values.
- `input_0`, `expected_0`, `given_0`, ...: the values of inputs, of the operations' results, and of
  the compiled plan's results (absent if it failed), by number. bfloat16 is stored as uint16;
  `plan.json` has the dtypes.
"""

import json
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from gt.engines.engine import Engine, Meta, Plan, Signature, Step
from gt.engines.native import DRAWN

#: The tolerance for floats, relative to the largest value.
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
    """A tensor's values with their meta; bfloat16 is represented as uint16."""

    meta: Meta
    values: np.ndarray

    def to_bytes(self) -> bytearray:
        """Return the values as bytes for `Engine.create`."""
        return bytearray(np.ascontiguousarray(self.values).tobytes())

    def as_numbers(self) -> np.ndarray:
        """Return the values as numbers to compare, with bfloat16 as float32."""
        if self.meta.dtype == "bfloat16":
            return (self.values.astype("uint32") << 16).view("float32")
        return self.values


@dataclass(frozen=True, slots=True)
class Difference:
    """An output of a run that differs from the operations' result.

    `way` names the run. `index` is the element with the largest difference, `given` and `expected`
    are its values, and `count` is the number of elements that differ by more than the tolerance.
    """

    way: str
    output: int
    index: tuple[int, ...]
    given: Any
    expected: Any
    count: int

    def __str__(self) -> str:
        """Return a description of the difference and its position."""
        place = f"output {self.output} at {list(self.index)}"
        return f"{self.way}: {place}: {self.given} instead of {self.expected} ({self.count} wrong)"


def load(path: str | os.PathLike[str]) -> tuple[Plan, list[Any], list[Array], list[Array]]:
    """Read a file; return the plan, its inputs (`Array` or numbers), the expected outputs and the
    given ones.

    Constants and random numbers are inputs of the plan, as in plans that engines receive.

    Raises:
        ValueError: The format of the file is unknown.

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
    """Renumbers the values: inputs, then constants, then random numbers, then the steps."""

    def __init__(self, written: dict[str, Any], arrays: dict[str, np.ndarray]):
        self.written = written
        self.steps: list[dict[str, Any]] = written["steps"]
        self.count = len(written["inputs"])
        self.inputs: list[Any] = []
        self.values: list[Any] = []
        for index, given in enumerate(written["inputs"]):
            if "number" in given:
                self.take(type(given["number"]), given["number"])
            else:
                meta = _meta(given["tensor"])
                self.take(meta, Array(meta, arrays[f"input_{index}"]))

    def take(self, described: Any, value: Any) -> int:
        """Add an input; return its number."""
        self.inputs.append(described)
        self.values.append(value)
        return len(self.inputs) - 1

    def plan(self) -> Plan:
        """Return the plan in the form that engines receive."""
        operands = [
            [self._operand(operand, step) for operand in step["operands"]] for step in self.steps
        ]
        self.numbers: dict[int, int] = dict(enumerate(range(self.count)))
        for index, step in enumerate(self.steps):
            if step["operation"] in DRAWN:
                array = self._draw(step)
                self.numbers[self.count + index] = self.take(array.meta, array)
        made: list[Step] = []
        tuples: dict[int, int] = {}
        for index, (step, given) in enumerate(zip(self.steps, operands, strict=True)):
            if step["operation"] in DRAWN:
                continue
            output, name = _meta(step["output"]), step["operation"]
            known = tuples if name == "further" else self.numbers
            places = [known[old] if old is not None else new or 0 for old, new in given]
            attributes = {key: _tuple(value) for key, value in step["attributes"].items()}
            made.append(Step(name, tuple(places), attributes, output))
            number = len(self.inputs) + len(made) - 1
            if step["results"] > 1:
                # For engines the operation returns a tuple, from which `further` takes each result.
                tuples[self.count + index] = number
                made.append(Step("further", (number,), {"index": 0}, output))
                number += 1
            self.numbers[self.count + index] = number
        outputs = tuple(self.numbers[output] for output in self.written["outputs"])
        return Plan(tuple(self.inputs), tuple(made), outputs)

    def _operand(
        self, operand: dict[str, Any], step: dict[str, Any]
    ) -> tuple[int | None, int | None]:
        """Return a value's old number and None, or None and a constant's new number."""
        if "value" in operand:
            return operand["value"], None
        if step["operation"] in DRAWN:
            return None, None
        return None, self.take(operand["constant"], operand["constant"])

    def _draw(self, step: dict[str, Any]) -> Array:
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
        """Return the metas of the outputs."""
        metas = []
        for output in self.written["outputs"]:
            of_input = output < self.count
            of = self.written["inputs"][output]["tensor"] if of_input else None
            metas.append(_meta(of or self.steps[output - self.count]["output"]))
        return metas


def replay(path: str | os.PathLike[str], engine: Engine) -> list[Difference]:
    """Run a file's plan on an engine, step by step and compiled; return the differences from the
    expected outputs.

    The runs are `"step by step"`, `"compiled"`, and `"compiled, again"`, a repetition that exposes
    errors of the second run. Integers and bools are compared exactly; floats with a tolerance that
    is coarser than the worker's bounds.

    Raises:
        ValueError: The format of the file is unknown.

    Example:
        >>> for difference in replay("native-0123456789abcdef-77.npz", NumPyEngine()):
        ...     print(difference)
    """
    plan, values, expected, _ = load(path)

    def given() -> list[Any]:
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


def _meta(written: dict[str, Any]) -> Meta:
    return Meta(written["dtype"], tuple(written["shape"]))


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
