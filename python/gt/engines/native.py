"""The native engine behind others: what computes the operations that an engine has nothing for.

Values go through the host's memory, so this is the way for operations that are rare, or that a
library lacks: NumPy has no gamma function, JAX no Airy function.
"""

from collections.abc import Callable
from typing import Any

from gt._gt import native
from gt.engines.engine import Meta, Operand, Signature

#: The names of an operation's operands, by its own name.
OPERANDS: dict[str, tuple[str, ...]] = native.operand_names()
#: Operations that are told the dtype of their result, by an attribute.
_TOLD = frozenset("full arange linspace eye rand randn randint cast".split())


def results(operation: str, operands: tuple[Operand, ...], attributes: dict) -> list[Meta]:
    """Give the metas of all results of an operation."""
    metas = [
        (operand.dtype, list(operand.shape)) if isinstance(operand, Meta) else operand()
        for operand in operands
    ]
    found = native.infer(operation, metas, attributes)
    return [Meta(dtype, tuple(shape)) for dtype, shape in found]


def computes(
    signature: Signature, read: Callable[[Any], Any], create: Callable[..., Any]
) -> Callable:
    """Give a function of an operation's operands and attributes that computes it natively.

    `read` gives a value as `(dtype, shape, values)`, the values as an engine's `read` does, or a
    number as it is; `create` is an engine's. Of several results it gives a tuple.
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
