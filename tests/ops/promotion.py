"""PyTorch's promotion rules, implemented independently of GT's."""

FLOATS = ["float16", "bfloat16", "float32", "float64"]
ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", *FLOATS]
CATEGORY = {name: 2 if name in FLOATS else 0 if name == "bool" else 1 for name in ORDER}
PAIRS = {
    frozenset(("float16", "bfloat16")): "float32",
    frozenset(("uint8", "int8")): "int16",
}


def promote(a: str, b: str) -> str:
    """Return the promoted dtype of two tensors with axes."""
    if a == b:
        return a
    return PAIRS.get(frozenset((a, b))) or max(a, b, key=ORDER.index)


def result_type(operands: list) -> str:
    """Return the promoted dtype of operands: (dtype name, rank) for tensors, or Python numbers."""
    levels: list = [None, None, None]
    for operand in operands:
        if isinstance(operand, tuple):
            dtype, level = operand[0], 0 if operand[1] > 0 else 1
        else:
            dtype = {bool: "bool", int: "int64", float: "float32"}[type(operand)]
            level = 2
        levels[level] = dtype if levels[level] is None else promote(levels[level], dtype)
    result = None
    for dtype in levels:
        if dtype is None:
            continue
        if result is None or CATEGORY[dtype] > CATEGORY[result]:
            result = dtype if result is None else promote(result, dtype)
    return result


def to_float(dtype: str) -> str:
    """Return the dtype in which functions such as exp compute."""
    return dtype if dtype in FLOATS or dtype.startswith("complex") else "float32"
