"""Operands for which an operation must fail, with the native engine's error message."""

from typing import Any

import numpy as np

from gt.engines.check.plans import Builder
from gt.engines.check.values import put
from gt.engines.engine import Engine, Meta

_X = np.arange(12).reshape(3, 4)
_SOURCE, _POINT = np.ones((2, 4), "int64"), np.ones((1, 4), "int64")
_INT64 = Meta("int64", (3, 4))

#: Valid operands by name.
GOOD: dict[str, Any] = {
    "rows": np.array([2, 0]),
    "points": np.array([[0, 2, 1, 0]]),
    "wrapped": np.array([-3, 2]),
    "divisor": np.array([5, -1, 7, 3]),
    "number": 2,
    "exponent": 2,
}
#: (operation, operands, attributes, result); a string names an operand in `GOOD`.
STEPS: list[tuple[str, list[Any], dict[str, Any], Meta]] = [
    ("index_select", [_X, "rows"], {"dim": 0}, Meta("int64", (2, 4))),
    ("index_add", [_X, "rows", _SOURCE], {"dim": 0}, _INT64),
    ("index_copy", [_X, "rows", _SOURCE], {"dim": 0}, _INT64),
    ("gather", [_X, "points"], {"dim": 0}, Meta("int64", (1, 4))),
    ("scatter_add", [_X, "points", _POINT], {"dim": 0}, _INT64),
    ("wrap_index", ["wrapped"], {"length": 3}, Meta("int64", (2,))),
    ("floor_divide", [_X, "divisor"], {}, _INT64),
    ("remainder", [_X, "divisor"], {}, _INT64),
    ("floor_divide", [_X, "number"], {}, _INT64),
    ("remainder", [_X, "number"], {}, _INT64),
    ("pow", [_X, "exponent"], {}, _INT64),
]
#: (name of an operand, an invalid value for it, the first step that fails).
BAD: list[tuple[str, Any, int]] = [
    ("rows", np.array([1, 3]), 0),
    ("rows", np.array([-1, 3]), 0),
    ("points", np.array([[0, 1, 2, 7]]), 3),
    ("points", np.array([[0, -9, 2, 7]]), 3),
    ("wrapped", np.array([-3, 3]), 5),
    ("wrapped", np.array([-4, 8]), 5),
    ("divisor", np.array([5, 0, 7, 3]), 6),
    ("number", 0, 8),
    ("exponent", -1, 10),
]


def given(step: int, name: str, value: Any) -> list[Any] | None:
    """Return a step's operands with the named one replaced; None if it has no such operand."""
    operands = STEPS[step][1]
    if not any(isinstance(operand, str) and operand == name for operand in operands):
        return None
    return [value if isinstance(operand, str) else operand for operand in operands]


def cases() -> list[tuple[str, list[Any], dict[str, Any]]]:
    """Return (operation, operands, attributes) of each case; one operand is invalid."""
    found = []
    for step, (operation, _, attributes, _) in enumerate(STEPS):
        for name, value, _ in BAD:
            operands = given(step, name, value)
            if operands is not None:
                found.append((operation, [_paired(operand) for operand in operands], attributes))
    nothing = [(np.zeros((0, 2)), "float64"), (np.array([0]), "int64")]
    found.append(("index_select", nothing, {"dim": 0}))
    return found


def _paired(operand: Any) -> Any:
    return (operand, operand.dtype.name) if isinstance(operand, np.ndarray) else operand


def build() -> tuple[Builder, list[int]]:
    """Plan all steps at once; return the builder and the numbers of their values."""
    constants = [operand for _, operands, _, _ in STEPS for operand in operands]
    constants = [operand for operand in constants if not isinstance(operand, str)]
    names, builder, place = list(GOOD), Builder(*GOOD.values(), *constants), len(GOOD)
    outputs = []
    for operation, operands, attributes, output in STEPS:
        numbers = []
        for operand in operands:
            if isinstance(operand, str):
                numbers.append(names.index(operand))
            else:
                numbers.append(place)
                place += 1
        outputs.append(builder.step(operation, *numbers, output=output, **attributes))
    return builder, outputs


def inputs(engine: Engine, builder: Builder, name: str, value: Any) -> list[Any]:
    """Return the plan's inputs with the named one replaced."""
    values = builder.values(engine)
    values[list(GOOD).index(name)] = put(engine, value)
    return values
