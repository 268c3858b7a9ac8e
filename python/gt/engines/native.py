"""The native engine behind others: what computes the operations that an engine has nothing for.

Values go through the host's memory, so this is the way for operations that are rare, or that a
library lacks: NumPy has no gamma function, JAX no Airy function.
"""

from collections.abc import Callable
from typing import Any

from gt._gt import native
from gt.engines.engine import Meta, Operand, Step

#: The names of an operation's operands, by its own name.
OPERANDS: dict[str, tuple[str, ...]] = native.operand_names()


def results(step: Step, operands: tuple[Operand, ...]) -> list[Meta]:
    """Give the metas of all results of a step."""
    metas = [
        (operand.dtype, list(operand.shape)) if isinstance(operand, Meta) else operand()
        for operand in operands
    ]
    return [Meta(dtype, tuple(shape)) for dtype, shape in native.infer(*_call(step, metas))]


def _call(step: Step, operands: list) -> tuple[str, list, dict[str, Any]]:
    return step.operation, operands, dict(step.attributes)


def computes(step: Step, read: Callable[[Any], Any], create: Callable[..., Any]) -> Callable:
    """Give a function of a step's operands that computes it on the native engine.

    `read` gives a value as `(dtype, shape, bytes)`, or a number as it is; `create` makes an
    engine's tensor of bytes, a dtype and a shape. A step with several results gives a tuple.
    """

    def compute(*values: Any) -> Any:
        made = native.compute(*_call(step, [read(value) for value in values]))
        tensors = [create(memoryview(data), dtype, tuple(shape)) for dtype, shape, data in made]
        return tuple(tensors) if len(tensors) > 1 else tensors[0]

    return compute
