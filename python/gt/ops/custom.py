"""Custom operations, computed by functions that users register with engines by name."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Sequence
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
    sharding: str | None = None,
) -> Callable[..., Any]:
    """Return a function that issues a custom operation, computed by the workers' engine.

    The engine must have a function under this name: see `gt.engines.Engine.register`. Tensors are
    passed by position; attributes are passed by name and are ints, floats, bools, strings or lists
    of ints. Without a sharding rule the operation is computed on one worker, on unsharded operands:
    sharded ones are gathered.

    Args:
        name: up to 128 letters, digits and characters of `_.:-`.
        results: takes what the operation takes, and returns `(dtype, shape)` of its result, or a
            list of such pairs for an operation that returns a tuple.
        gradient: called with the gradients of the results, the inputs and the results, each a
            tuple, and the attributes by name; returns a gradient for each input, or None for inputs
            without one. Without it, a backward pass through the operation raises an error.
        sharding: names the axes of the inputs and the results, as in `"b t d, b s d -> b t d"`. An
            axis that is named in the results may be sharded, if computing on a slice of it yields
            that slice of the result: the function then gets a slice of each input that has the
            axis. `_` is an axis that is never sharded. A named axis has the same position in all
            results.

    >>> scale = gt.custom_op("scale", lambda x, factor=1.0: (x.dtype, x.shape))
    >>> scale
    custom_op('scale')
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"custom_op: name is {name!r}, expected 1 to 128 letters, digits or _.:-")
    for given, value in (("results", results), ("gradient", gradient)):
        if not callable(value) and (given == "results" or value is not None):
            raise TypeError(f"custom_op: {given} is {value!r}, expected a function")
    axes = None if sharding is None else _Axes(name, sharding)
    return _CustomOp(name, results, gradient, axes)


@dataclass(frozen=True, slots=True)
class _Use:
    """One call of an operation, without its tensors."""

    attributes: dict[str, Any]
    declared: list[int]
    text: str
    sharding: list[int]
    inputs: int
    is_single: bool


def _function(operation: _CustomOp) -> type[Function]:
    """Return the autograd function of an operation."""
    title, name, gradient = f"custom:{operation.name}", operation.name, operation.gradient

    class Custom(Function):
        @staticmethod
        def forward(context: Any, use: Any, *tensors: Tensor) -> Any:
            made = _gt.primitives.custom(tensors, name, use.declared, use.text, use.sharding)
            context.use = use
            if gradient is not None:
                context.save_for_backward(*tensors, *made)
            return made[0] if use.is_single else tuple(made)

        @staticmethod
        def backward(context: Any, *grads: Any) -> Any:
            if gradient is None:
                raise RuntimeError(
                    f"{title}: there is no gradient rule\n"
                    "  hint: pass one as gt.custom_op(..., gradient=function)"
                )
            saved, count = context.saved_tensors, context.use.inputs
            given = gradient(grads, saved[:count], saved[count:], **context.use.attributes)
            given = (given,) if isinstance(given, Tensor) else tuple(given)
            if len(given) != count:
                raise RuntimeError(
                    f"{title}: the gradient rule returned {len(given)} gradients, expected {count}"
                )
            return None, *given

    Custom.__name__ = title
    return Custom


class _CustomOp:
    """The callable that `custom_op` returns."""

    def __init__(
        self,
        name: str,
        results: Callable[..., Any],
        gradient: Callable[..., Any] | None,
        axes: _Axes | None,
    ):
        self.name, self.results, self.gradient, self.axes = name, results, gradient, axes
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
                    "attributes are passed by name"
                )
        try:
            bound = self.signature.bind(*inputs, **attributes)
        except TypeError as error:
            raise TypeError(f"{title}: {error}") from None
        bound.apply_defaults()
        attributes = self._attributes(bound)
        described = self.results(*inputs, **attributes)
        declared = self._declared(described)
        sharding = self.axes.numbers(inputs, declared) if self.axes else []
        text, is_single = json.dumps(attributes), isinstance(described, tuple)
        use = _Use(attributes, declared, text, sharding, len(inputs), is_single)
        return self.function.apply(use, *inputs)

    def _attributes(self, bound: inspect.BoundArguments) -> dict[str, Any]:
        """Return the arguments that are not tensors, with defaults, in the signature's order."""
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
        """Return the results encoded as ints: for each, dtype code, number of axes, lengths."""
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
                f"custom:{self.name}: results returned {described!r}, "
                "expected (dtype, shape) or a list of such pairs"
            ) from None
        return numbers


class _Axes:
    """The sharding rule of an operation: the names of the axes of its inputs and results."""

    def __init__(self, operation: str, rule: str):
        self.title, self.rule = f"custom:{operation}", rule
        inputs, arrow, results = rule.partition("->") if isinstance(rule, str) else ("", "", "")
        if not arrow:
            raise ValueError(
                f"{self.title}: sharding is {rule!r}, expected names of axes, as in 'b d, d -> b d'"
            )
        self.inputs = [names.split() for names in inputs.split(",")]
        self.results = [names.split() for names in results.split(",")]
        for names in self.inputs + self.results:
            named = [name for name in names if name != "_"]
            if len(set(named)) != len(named):
                raise ValueError(f"{self.title}: sharding {rule!r} names an axis of a tensor twice")
        first = self.results[0]
        for names in self.results[1:]:
            if any(name != "_" and names[at : at + 1] != [name] for at, name in enumerate(first)):
                raise ValueError(
                    f"{self.title}: sharding {rule!r}: the axes {first} of the first result are "
                    f"not those of another, {names}; name an axis that not all results have '_'"
                )

    def numbers(self, inputs: Sequence[Tensor], declared: list[int]) -> list[int]:
        """Return the rule as ints: for each input and the first result, its axes' factors.

        A factor is the position of the axis in the first result, or -1 for an axis that is never
        sharded.
        """
        first = self.results[0]
        ranks = [tensor.ndim for tensor in inputs]
        named = [len(names) for names in self.inputs]
        if ranks != named or declared[1] != len(first):
            raise ValueError(
                f"{self.title}: the tensors have {ranks} axes, and the first result {declared[1]}; "
                f"sharding {self.rule!r} names {named} and {len(first)}"
            )
        shapes = [*(tensor.shape for tensor in inputs), declared[2 : 2 + len(first)]]
        lengths: dict[str, int] = {}
        numbers: list[int] = []
        for names, shape in zip([*self.inputs, first], shapes, strict=True):
            for name, length in zip(names, shape, strict=True):
                if name != "_" and lengths.setdefault(name, length) != length:
                    raise ValueError(
                        f"{self.title}: '{name}' in sharding {self.rule!r} is an axis of "
                        f"{lengths[name]} and of {length} elements, expected one length"
                    )
            cut = [first.index(name) if name in first and name != "_" else -1 for name in names]
            numbers += [len(names), *cut]
        return numbers
