"""GT's rules of type promotion, which are the same on every engine.

Operations on 16-bit floats compute in float32 and round their result. Python numbers and 0-d
tensors are weakly typed: they affect the dtype only if they raise its category.
"""

from gt.engines.engine import Kind, Signature

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex64", "complex128")
#: From lowest to highest.
_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", *_FLOATS, *_COMPLEX)
_NUMBERS = {bool: "bool", int: "int64", float: "float32", complex: "complex64"}
#: The promoted dtype of pairs neither of which contains the other.
_BETWEEN = {
    frozenset(("uint8", "int8")): "int16",
    frozenset(("float16", "bfloat16")): "float32",
    frozenset(("float64", "complex64")): "complex128",
}

#: Predicates, which are computed in the dtype that all operands are promoted to.
QUESTIONS = frozenset(
    "logical_not isnan signbit eq ne lt le gt ge logical_and logical_or logical_xor".split()
)
#: Operations that only move or select values, in the dtype of the result.
_MOVES = frozenset(
    """full reshape permute expand place flip cat tril triu
    gather index_select index_copy sort topk max_pool max_along min_along cummax cummin""".split()
)
#: Operations whose operands are not converted (nor are those of attention, linalg and FFTs).
_AS_THEY_ARE = ("cast", "further", "frexp", "view_as_real", "view_as_complex")
#: Operations whose second operand is an index.
_INDEXED = frozenset(
    "gather scatter_add index_select index_add index_copy scatter scatter_reduce".split()
)


def is_float(dtype: str) -> bool:
    """Return whether a dtype is a floating-point dtype."""
    return dtype in _FLOATS


def is_complex(dtype: str) -> bool:
    """Return whether a dtype is complex."""
    return dtype in _COMPLEX


def is_whole(dtype: str) -> bool:
    """Return whether a dtype is an integer dtype, which bool is not."""
    return dtype not in ("bool", *_FLOATS, *_COMPLEX)


def compute_dtype(dtype: str) -> str:
    """Return the dtype in which operations on values of a dtype compute."""
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def _category(dtype: str) -> int:
    if dtype in _COMPLEX:
        return 3
    return 0 if dtype == "bool" else 1 if is_whole(dtype) else 2


def _join(left: str, right: str) -> str:
    if left == right:
        return left
    return _BETWEEN.get(frozenset((left, right))) or max(left, right, key=_ORDER.index)


def promote(operands: tuple[Kind | type, ...]) -> str:
    """Return the promoted dtype: tensors with axes decide, others only raise the category."""
    levels: list[str | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, Kind):
            level, dtype = (0 if operand.has_axes else 1), operand.dtype
        else:
            level, dtype = 2, _NUMBERS[operand]
        seen = levels[level]
        levels[level] = dtype if seen is None else _join(seen, dtype)
    strong: str | None = None
    for weak in levels:
        if strong is None:
            strong = weak
        elif weak is not None and _category(weak) > _category(strong):
            strong = _join(strong, weak)
    return strong or "float32"


def taken_as(signature: Signature) -> tuple[str | None, ...]:
    """Return the dtype that each operand is converted to first; None for no conversion."""
    name, operands, output = signature.operation, signature.operands, signature.output
    if name in _AS_THEY_ARE or name.startswith(("_attention", "_linalg", "_fft")):
        return (None,) * len(operands)
    if name in QUESTIONS:
        return (compute_dtype(promote(operands)),) * len(operands)
    if name == "where":
        return ("bool", output, output)
    if name in ("any", "all", "nonzero"):
        return ("bool",)
    if name in ("masked_rows", "masked_rows_scatter"):
        return (output, "bool", output)[: len(operands)]
    if name in ("argmax", "argmin", "abs"):
        return (compute_dtype(promote(operands)),)
    if name == "arange":
        whole = all(_category(promote((operand,))) < 2 for operand in operands)
        return ("int64" if whole else "float64",) * 2
    if name == "linspace":
        return ("float64", "float64")
    if name in ("slice", "slice_assign"):
        tensors = 1 if name == "slice" else 2
        return (output,) * tensors + ("int64",) * (len(operands) - tensors)
    dtype = output if name in _MOVES else compute_dtype(output)
    if name in _INDEXED:
        return (dtype, "int64", dtype)[: len(operands)]
    return (dtype,) * len(operands)
