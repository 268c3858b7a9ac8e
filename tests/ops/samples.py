"""Inputs for the samples that the instruction set brings along."""

import zlib

import gt
import numpy as np

OPERATIONS = {operation["name"]: operation for operation in gt._gt.operations()}
CASES = [
    (name, index)
    for name, operation in OPERATIONS.items()
    for index in range(len(operation["samples"]))
]


def draw(operand: dict, seed: int) -> np.ndarray:
    """Draw values for a tensor operand; bfloat16 ones as float32 that bfloat16 can hold."""
    random = np.random.default_rng(seed)
    dtype, shape = operand["dtype"], operand["shape"]
    if dtype == "bool":
        # From 1 on all are True, up to 0 none is.
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


def inputs(name: str, index: int, in_float64: bool = False):
    """Give a sample's operands as arrays (with dtype names) or numbers, and its attributes.

    With `in_float64`, every float dtype is drawn as float64, so that differences mean something.
    """
    sample = OPERATIONS[name]["samples"][index]
    seed = zlib.crc32(f"{name}/{index}".encode())
    operands, dtypes = [], []
    for number, operand in enumerate(sample["operands"]):
        if not isinstance(operand, dict):
            operands.append(operand)
            dtypes.append(None)
            continue
        if in_float64 and "float" in operand["dtype"]:
            operand = {**operand, "dtype": "float64"}
        operands.append(draw(operand, seed + number))
        dtypes.append(operand["dtype"])
    return operands, dtypes, dict(sample["attributes"])


def to_gt(value, dtype):
    """Give an operand as GT takes it."""
    if dtype is None:
        return value
    return gt.tensor(value, dtype=dtype)


def apply(name: str, operands: list, **attributes):
    """Issue a primitive with its operands in their order, and its attributes by name."""
    primitive, names = getattr(gt._gt.primitives, name), OPERATIONS[name]["operands"]
    if names == ["tensors"]:
        return primitive(operands, **attributes)
    return primitive(**dict(zip(names, operands, strict=True)), **attributes)
