"""Operations of users, computed by functions that engines have under their names."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gt import _gt
from gt._gt import Tensor
from gt.autograd.function import Function

#: The dtypes in the order of their codes.
_DTYPES = (
    _gt.bool,
    _gt.uint8,
    _gt.int8,
    _gt.int16,
    _gt.int32,
    _gt.int64,
    _gt.float16,
    _gt.bfloat16,
    _gt.float32,
    _gt.float64,
    _gt.complex64,
    _gt.complex128,
)

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


def custom_op(
    name: str,
    results: Callable[..., Any],
    gradient: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Give a function that has the workers' engine compute an operation of your own.

    The engine has a function under this name: `gt.engines.Engine.register`. Tensors are given by
    position; attributes by name are ints, floats, bools, strings or lists of ints. The operation
    is computed whole, in one place: operands that are cut over workers are gathered.

    Args:
        name: up to 128 letters, digits and characters of `_.:-`.
        results: takes what the operation takes, and gives `(dtype, shape)` of its result, or a list
            of such pairs, for an operation that gives a tuple.
        gradient: called with the gradients of the results, the inputs and the results, each a
            tuple, and the attributes by name; gives a gradient for each input, None where there
            is none. Without it, a backward pass through the operation is an error.

    >>> scale = gt.custom_op("scale", lambda x, factor=1.0: (x.dtype, x.shape))
    >>> scale
    custom_op('scale')
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"custom_op: name is {name!r}, expected 1 to 128 letters, digits or _.:-")
    for given, value in (("results", results), ("gradient", gradient)):
        if not callable(value) and (given == "results" or value is not None):
            raise TypeError(f"custom_op: {given} is {value!r}, expected a function")
    return _CustomOp(name, results, gradient)


@dataclass(frozen=True, slots=True)
class _Use:
    """What a use of an operation has besides its tensors."""

    attributes: dict[str, Any]
    declared: list[int]
    text: list[int]
    inputs: int
    is_single: bool


def _function(operation: _CustomOp) -> type[Function]:
    """Give what stands on the tape for an operation."""
    title, name, gradient = f"custom:{operation.name}", _bytes(operation.name), operation.gradient

    class Custom(Function):
        @staticmethod
        def forward(context, use, *tensors):
            made = _gt.primitives.custom(tensors, name, use.declared, use.text)
            context.use = use
            if gradient is not None:
                context.save_for_backward(*tensors, *made)
            return made[0] if use.is_single else tuple(made)

        @staticmethod
        def backward(context, *grads):
            if gradient is None:
                raise RuntimeError(
                    f"{title}: there is no gradient rule\n"
                    "  hint: give one by gt.custom_op(..., gradient=function)"
                )
            saved, count = context.saved_tensors, context.use.inputs
            given = gradient(grads, saved[:count], saved[count:], **context.use.attributes)
            given = (given,) if isinstance(given, Tensor) else tuple(given)
            if len(given) != count:
                raise RuntimeError(
                    f"{title}: the gradient rule gave {len(given)} gradients, expected {count}"
                )
            return None, *given

    Custom.__name__ = title
    return Custom


class _CustomOp:
    """What `custom_op` gives."""

    def __init__(self, name: str, results: Callable, gradient: Callable | None):
        self.name, self.results, self.gradient = name, results, gradient
        self.signature = inspect.signature(results)
        self.function = _function(self)

    def __repr__(self) -> str:
        return f"custom_op({self.name!r})"

    def __call__(self, *inputs: Tensor, **attributes: Any) -> Any:
        title = f"custom:{self.name}"
        if not inputs:
            raise TypeError(f"{title}: no operands given, expected at least one tensor")
        for place, value in enumerate(inputs):
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"{title}: operand {place} is a {type(value).__name__}, expected a tensor; "
                    "attributes are given by name"
                )
        try:
            bound = self.signature.bind(*inputs, **attributes)
        except TypeError as error:
            raise TypeError(f"{title}: {error}") from None
        bound.apply_defaults()
        attributes = self._attributes(bound)
        described = self.results(*inputs, **attributes)
        declared = self._declared(described)
        text = _bytes(json.dumps(attributes))
        use = _Use(attributes, declared, text, len(inputs), isinstance(described, tuple))
        return self.function.apply(use, *inputs)

    def _attributes(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """Give what is not a tensor, with the defaults, in the order of the signature."""
        variadic = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        named: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            kind = self.signature.parameters[name].kind
            if kind == variadic[0] or isinstance(value, Tensor):
                continue
            named.update(value if kind == variadic[1] else {name: value})
        for name, value in named.items():
            if isinstance(value, tuple):
                named[name] = value = list(value)
            is_list = isinstance(value, list) and all(type(item) is int for item in value)
            if not is_list and not isinstance(value, bool | int | float | str):
                raise TypeError(
                    f"custom:{self.name}: attribute '{name}' is {value!r}, expected an int, "
                    "a float, a bool, a string or a list of ints"
                )
        return named

    def _declared(self, described: Any) -> list[int]:
        """Give the results as numbers: the dtype's code, the number of axes, and the lengths."""
        results = [described] if isinstance(described, tuple) else described
        numbers: list[int] = []
        try:
            if not results:
                raise ValueError
            for dtype, shape in results:
                lengths = [int(length) for length in shape]
                numbers += [_DTYPES.index(dtype), len(lengths), *lengths]
        except (TypeError, ValueError):
            raise TypeError(
                f"custom:{self.name}: results gave {described!r}, "
                "expected (dtype, shape) or a list of such pairs"
            ) from None
        return numbers


def _bytes(text: str) -> list[int]:
    return list(text.encode())
