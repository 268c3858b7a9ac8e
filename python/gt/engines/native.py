"""The native engine as a fallback for operations that another engine does not lower.

Values are copied through host memory, so this is for operations that are rare, or that a library
lacks: NumPy has no gamma function, JAX no Airy function.
"""

from collections.abc import Callable
from typing import Any

from gt._gt import native
from gt.engines.engine import Meta, Operand, Signature

_DECLARED = native.declarations()
#: Operation -> the names of its operands.
OPERANDS: dict[str, tuple[str, ...]] = {
    name: declared["operands"] for name, declared in _DECLARED.items()
}
#: Operations that draw random numbers of a given size, from seeds alone.
DRAWN = frozenset(
    name
    for name, declared in _DECLARED.items()
    if declared["result"] == "drawn" and "size" in declared["attributes"]
)
#: Operations with an attribute `dtype` for the dtype of their result.
_TOLD = frozenset(name for name, declared in _DECLARED.items() if "dtype" in declared["attributes"])


def results(
    operation: str, operands: tuple[Operand, ...], attributes: dict[str, Any]
) -> list[Meta]:
    """Return the metas of all results of an operation."""
    metas = [
        (operand.dtype, list(operand.shape)) if isinstance(operand, Meta) else operand()
        for operand in operands
    ]
    found = native.infer(operation, metas, attributes)
    return [Meta(dtype, tuple(shape)) for dtype, shape in found]


def computes(
    signature: Signature, read: Callable[[Any], Any], create: Callable[..., Any]
) -> Callable[..., Any]:
    """Return a function of an operation's operands and attributes that computes it natively.

    `read` returns a tensor as `(dtype, shape, values)`, with values as from `Engine.read`, and a
    number unchanged; `create` is `Engine.create`. The function returns a tuple if the operation has
    several results.
    """
    operation = signature.operation
    if operation == "further":
        return lambda results, index: results[index]
    told = {"dtype": signature.output} if operation in _TOLD else {}
    count = len(OPERANDS[operation])

    def compute(*values: Any, **attributes: Any) -> Any:
        attributes.update(told)
        if operation in ("slice", "slice_assign") and len(values) > count:
            values, attributes["starts"] = values[:count], list(values[count:])
        made = native.compute(operation, [read(value) for value in values], attributes)
        tensors = [create(data, dtype, tuple(shape)) for dtype, shape, data in made]
        return tuple(tensors) if len(tensors) > 1 else tensors[0]

    return compute
