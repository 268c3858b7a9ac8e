"""Cases with special values: NaN, infinities, the limits of dtypes, and numbers beyond them."""

from functools import cache
from typing import Any

import numpy as np

from gt.engines.check.values import DTYPES

_FLOATS = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 300.7, -300.7, np.nan, np.inf, -np.inf]
_WIDE = [*_FLOATS, 1e30, -1e30, 2.0**63, -(2.0**63)]
#: Values that are rounded to the nearest bfloat16, ties to even.
_ROUNDED = [1.00390625, 1.01171875, 3.3895314e38, 1e-40, -0.0, np.inf]

#: Complex dtypes are left out: they have no order and no limits.
_REAL = [dtype for dtype in DTYPES if not dtype.startswith("complex")]


def special(dtype: str) -> np.ndarray:
    """Return values of a dtype at which engines tend to differ."""
    if dtype == "bool":
        return np.array([True, False, True])
    if dtype == "float16":
        return np.array([*_FLOATS, 6e4, -6e4], dtype)
    if "float" in dtype:
        values = np.array(_WIDE, "float64" if dtype == "float64" else "float32")
        if dtype == "bfloat16":
            values = (values.view("uint32") & np.uint32(0xFFFF0000)).view("float32")
        return values
    ends = np.iinfo(dtype)
    below = [-1, -2, -3] if ends.min < 0 else []
    return np.array([0, 1, 2, 3, 100, ends.max, ends.min, *below], dtype)


def _column(dtype: str) -> tuple[np.ndarray, str]:
    return special(dtype).reshape(-1, 1), dtype


def _divisor(dtype: str) -> tuple[np.ndarray, str]:
    values = special(dtype)
    return values[values != 0], dtype


@cache
def cases() -> list[tuple[str, list[Any], dict[str, Any]]]:
    """Return (operation, operands, attributes) of each case; an array is paired with its dtype."""
    found: list[tuple[str, list[Any], dict[str, Any]]] = []
    for dtype in _REAL:
        x, pair = special(dtype), (special(dtype), dtype)
        found += [("cast", [pair], {"dtype": to}) for to in _REAL]
        found += [("any", [pair], {"dim": [], "keepdim": False})]
        found += [("eq", [_column(dtype), pair], {}), ("ge", [pair, 300], {})]
        found += [("where", [(x == x, "bool"), pair, number], {}) for number in (300, -1, 0.1)]
        found += [("full", [number], {"size": [2], "dtype": dtype}) for number in (300, -1.5)]
        found += [("triu", [(np.stack([x, x]), dtype)], {"diagonal": far}) for far in (9, 2**62)]
        if dtype == "bool":
            continue
        found += [(name, [pair], {}) for name in ("sign", "relu", "abs", "round", "logical_not")]
        found += [(name, [_column(dtype), pair], {}) for name in ("maximum", "minimum", "pow")]
        found += [("floor_divide", [_column(dtype), _divisor(dtype)], {})]
        found += [("remainder", [_column(dtype), _divisor(dtype)], {})]
        found += [("add", [pair, number], {}) for number in (1, 300, 0.1, True)]
        found += [("sub", [number, pair], {}) for number in (1, 300, 0.1)]
        found += [("clamp", [pair, -1, 300], {}), ("clamp", [pair, 0.1, 2], {})]
        found += [(name, [pair], {"dim": [], "keepdim": True}) for name in ("amax", "argmin")]
        rows = [(x[:3], dtype), (np.array([1, 1]), "int64"), (x[1:3], dtype)]
        found += [("index_copy", rows, {"dim": 0})]
    for ahead, behind in [("int64", "float16"), ("uint8", "int8"), ("float16", "bfloat16")]:
        found += [("add", [_column(ahead), (special(behind), behind)], {})]
        found += [("lt", [(special(ahead)[1], ahead), (special(behind), behind)], {})]
    for correction in (1, 2, 3):
        attributes = {"dim": [0], "keepdim": False, "correction": correction}
        found.append(("std", [(np.array([[1.0, 2.0], [3.0, 2.0]]), "float64")], attributes))
    halves = (np.array(_ROUNDED, "float32"), "float32")
    found.append(("cast", [halves], {"dtype": "bfloat16"}))
    nothing = [(np.zeros((0, 2), "int64"), "int64"), (np.array([0, 1]), "int64")]
    found.append(("floor_divide", nothing, {}))
    return found
