"""NaN, infinities, the ends of ranges and numbers beyond them, as on the native engine."""

import gt
import numpy as np
import pytest
from plans import DTYPES, Builder, check, get, reference

FLOATS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 300.7, -300.7, np.nan, np.inf, -np.inf]
WIDE = [*FLOATS, 1e30, -1e30, 2.0**63, -(2.0**63)]

#: Complex numbers have no order and no limits.
REAL = [dtype for dtype in DTYPES if not dtype.startswith("complex")]


def special(dtype: str) -> np.ndarray:
    """Give the values of a dtype at which engines tend to differ."""
    if dtype == "bool":
        return np.array([True, False, True])
    if dtype == "float16":
        return np.array([*FLOATS, 6e4, -6e4], dtype)
    if "float" in dtype:
        values = np.array(WIDE, "float64" if dtype == "float64" else "float32")
        if dtype == "bfloat16":
            values = (values.view("uint32") & np.uint32(0xFFFF0000)).view("float32")
        return values
    ends = np.iinfo(dtype)
    below = [-1, -2, -3] if ends.min < 0 else []
    return np.array([0, 1, 2, 3, 100, ends.max, ends.min, *below], dtype)


def column(dtype: str):
    return special(dtype).reshape(-1, 1), dtype


def divisor(dtype: str):
    values = special(dtype)
    return values[values != 0], dtype


def cases() -> list[tuple]:
    """Give operations with their inputs and attributes."""
    found: list[tuple] = []
    for dtype in REAL:
        x, pair = special(dtype), (special(dtype), dtype)
        found += [("cast", [pair], {"dtype": getattr(gt, to)}) for to in REAL]
        found += [("any", [pair], {"dim": [], "keepdim": False})]
        found += [("eq", [column(dtype), pair], {}), ("ge", [pair, 300], {})]
        found += [("where", [(x == x, "bool"), pair, number], {}) for number in (300, -1, 0.1)]
        found += [("full", [n], {"size": [2], "dtype": getattr(gt, dtype)}) for n in (300, -1.5)]
        found += [("triu", [(np.stack([x, x]), dtype)], {"diagonal": far}) for far in (9, 2**62)]
        if dtype == "bool":
            continue
        found += [(name, [pair], {}) for name in ("sign", "relu", "abs", "round", "logical_not")]
        found += [(name, [column(dtype), pair], {}) for name in ("maximum", "minimum", "pow")]
        found += [("floor_divide", [column(dtype), divisor(dtype)], {})]
        found += [("remainder", [column(dtype), divisor(dtype)], {})]
        found += [("add", [pair, number], {}) for number in (1, 300, 0.1, True)]
        found += [("sub", [number, pair], {}) for number in (1, 300, 0.1)]
        found += [("clamp", [pair, -1, 300], {}), ("clamp", [pair, 0.1, 2], {})]
        found += [(name, [pair], {"dim": [], "keepdim": True}) for name in ("amax", "argmin")]
        found += [("index_copy", [(x[:3], dtype), np.array([1, 1]), (x[1:3], dtype)], {"dim": 0})]
    for ahead, behind in [("int64", "float16"), ("uint8", "int8"), ("float16", "bfloat16")]:
        found += [("add", [column(ahead), (special(behind), behind)], {})]
        found += [("lt", [(special(ahead)[1], ahead), (special(behind), behind)], {})]
    for correction in (1, 2, 3):
        attributes = {"dim": [0], "keepdim": False, "correction": correction}
        found.append(("std", [np.array([[1.0, 2.0], [3.0, 2.0]])], attributes))
    return found


def test_special_values(engine):
    wanted, builder_inputs, steps = [], [], []
    for operation, given, attributes in cases():
        if not engine.lowers(operation):
            continue
        pairs = [
            pair
            if isinstance(pair, tuple)
            else (pair, pair.dtype.name if isinstance(pair, np.ndarray) else None)
            for pair in given
        ]
        meta, want = reference(
            operation, [value for value, _ in pairs], [dtype for _, dtype in pairs], attributes
        )
        names = {name: getattr(value, "name", value) for name, value in attributes.items()}
        first = len(builder_inputs)
        builder_inputs += pairs
        steps.append((operation, range(first, first + len(pairs)), meta, names))
        wanted.append(want)
    builder = Builder(*builder_inputs)
    outputs = [
        builder.step(operation, *operands, output=meta, **attributes)
        for operation, operands, meta, attributes in steps
    ]
    plan = builder.plan(*outputs)
    runs = [lambda values: engine.run(plan, values)]
    if engine.name == "jax":  # PyTorch would take minutes
        runs.append(engine.compile(plan))
    for run in runs:
        for (operation, operands, meta, attributes), want, out in zip(
            steps, wanted, run(builder.values(engine)), strict=True
        ):
            inputs = [builder.given[operand] for operand in operands]
            assert engine.describe(out) == meta, (operation, inputs)
            check(get(engine, out), want, operation, meta.dtype, (inputs, attributes))


@pytest.mark.parametrize("value", [1.00390625, 1.01171875, 3.3895314e38, 1e-40, -0.0, np.inf])
def test_bfloat16_is_rounded_to_the_nearest_even(engine, value):
    builder = Builder(np.array(value, "float32"))
    meta, want = reference("cast", [np.array(value)], ["float32"], {"dtype": gt.bfloat16})
    plan = builder.plan(builder.step("cast", 0, output=meta, dtype="bfloat16"))
    (out,) = engine.run(plan, builder.values(engine))
    assert get(engine, out).tobytes() == want.tobytes()
