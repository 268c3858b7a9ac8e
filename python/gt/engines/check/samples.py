"""The declared samples of every operation, with random values."""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from gt import _gt

#: The declarations of all operations by name.
OPERATIONS: dict[str, dict[str, Any]] = {
    operation["name"]: operation
    for operation in _gt.operations()
    if operation["name"] != "custom"  # each engine defines its own
}
#: Each sample as (operation, index among the operation's samples).
CASES = [
    (name, index)
    for name, operation in OPERATIONS.items()
    for index in range(len(operation["samples"]))
]
#: Lengths that do not fill SIMD vectors, or leave a remainder of one.
ODD_LENGTHS = (1, 7, 15, 17, 33)
#: The dtypes in which odd lengths are tried: one for each number representation.
_ODD_DTYPES = ("bool", "int8", "int64", "bfloat16", "float32", "complex64")


def draw(operand: dict[str, Any], seed: int) -> np.ndarray:
    """Draw values for a tensor operand; bfloat16 as float32 values that bfloat16 represents."""
    random = np.random.default_rng(seed)
    dtype, shape = operand["dtype"], operand["shape"]
    if dtype == "bool":
        # All values are True if low >= 1, and False if high <= 0.
        values = random.integers(0, 2, shape).astype(bool)
        return (values | (operand["low"] >= 1)) & (operand["high"] > 0)
    if "int" in dtype:
        low, high = int(np.ceil(operand["low"])), int(np.ceil(operand["high"]))
        return random.integers(low, max(high, low + 1), shape).astype(dtype)
    values = np.asarray(random.uniform(operand["low"], operand["high"], shape))
    if dtype == "bfloat16":
        bits = values.astype("float32").view("uint32") & np.uint32(0xFFFF0000)
        return bits.view("float32")
    if dtype.startswith("complex"):
        values = values + 1j * random.uniform(operand["low"], operand["high"], shape)
    return values.astype(dtype)


def drawn(sample: dict[str, Any], text: str) -> tuple[list[Any], list[Any]]:
    """Return a sample's operands as arrays or numbers, and their dtypes (None for numbers).

    The text is the random seed: equal texts yield equal values.
    """
    seed = zlib.crc32(text.encode())
    operands: list[Any] = []
    dtypes: list[str | None] = []
    for number, operand in enumerate(sample["operands"]):
        is_tensor = isinstance(operand, dict)
        operands.append(draw(operand, seed + number) if is_tensor else operand)
        dtypes.append(operand["dtype"] if is_tensor else None)
    return operands, dtypes


def inputs(
    name: str, index: int, in_float64: bool = False
) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """Return a sample's operands as arrays or numbers, their dtypes, and its attributes.

    With `in_float64`, every float operand is drawn as float64, precise enough for finite
    differences.
    """
    sample = OPERATIONS[name]["samples"][index]
    if in_float64:
        in_float = [
            {**operand, "dtype": "float64"}
            if isinstance(operand, dict) and "float" in operand["dtype"]
            else operand
            for operand in sample["operands"]
        ]
        sample = {**sample, "operands": in_float}
    return *drawn(sample, f"{name}/{index}"), dict(sample["attributes"])


def of_odd_lengths(name: str) -> Iterator[dict[str, Any]]:
    """Yield an operation's samples with other lengths: one sample per dtype, each odd length.

    All axes as long as the first tensor's last axis change their length together. Attributes stay
    the same, so some of these samples are invalid (an index may be out of range). Factorizations
    have none: large random matrices are nearly singular.
    """
    if name.startswith("_linalg"):
        return
    seen = set()
    for sample in OPERATIONS[name]["samples"]:
        tensors = [operand for operand in sample["operands"] if isinstance(operand, dict)]
        if not tensors or tensors[0]["dtype"] in seen or 0 in tensors[0]["shape"]:
            continue
        if tensors[0]["dtype"] not in _ODD_DTYPES or not tensors[0]["shape"]:
            continue
        seen.add(tensors[0]["dtype"])
        old = tensors[0]["shape"][-1]
        for length in ODD_LENGTHS:
            yield {**sample, "operands": [_resized(it, old, length) for it in sample["operands"]]}


def _resized(operand: Any, old: int, new: int) -> Any:
    if not isinstance(operand, dict):
        return operand
    return {**operand, "shape": tuple(new if at == old else at for at in operand["shape"])}
