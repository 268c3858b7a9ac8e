"""Operations in the code that JAX traces: dtypes, and what is required of values."""

import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gt.engines.engine import Function
from gt.engines.promotion import is_complex, is_whole


class _Requirements(threading.local):
    """What the code that is being traced requires of values: nothing can be raised there."""

    def __init__(self) -> None:
        self.fine: list[Any] = []


_required = _Requirements()


def require(fine: Any, error: Callable[[], Exception]) -> None:
    """Raise an error unless all is fine; while tracing, leave it to who runs the code."""
    if isinstance(fine, jax.core.Tracer):
        _required.fine.append(fine.all())
    elif not fine.all():
        raise error()


def with_requirements(function: Callable[[], Any]) -> tuple[Any, Any]:
    """Trace a function: give what it gives, and whether all is fine, None if it always is."""
    outer, _required.fine = _required.fine, []
    try:
        result = function()
        return result, jnp.stack(_required.fine).all() if _required.fine else None
    finally:
        _required.fine = outer


@lru_cache(maxsize=4096)
def one_step(function: Function, arguments: tuple, dtypes: tuple, result: str) -> Function:
    """Compile an operation for any step that is like it; JAX does so for each shape."""

    def compute(*values: Any) -> jax.Array:
        taken = [
            as_it_is(value) if dtype is None else converted(value, dtype)
            for value, dtype in zip(values, dtypes, strict=True)
        ]
        return converted(function(*taken, **dict(arguments)), result)

    compiled = jax.jit(lambda *values: with_requirements(lambda: compute(*values)))

    def step(*values: Any) -> jax.Array:
        try:
            out, fine = compiled(*values)
        except jax.errors.ConcretizationTypeError:
            return compute(*values)  # it needs to know a value: one that is wrong anyway
        if isinstance(fine, jax.core.Tracer):
            _required.fine.append(fine)
        elif fine is not None and not fine:
            compute(*values)  # says what is wrong
        return out

    return step


def as_it_is(value: Any) -> Any:
    """Give an array or a number as an array; several results stay as they are."""
    return value if isinstance(value, tuple) else jnp.asarray(value)


def converted(value: Any, dtype: str) -> Any:
    """Give an array or a number in a dtype, by the rules of the cast operation."""
    if isinstance(value, tuple):
        return value  # its results are taken out of it, and converted, one by one
    x = jnp.asarray(value)
    if x.dtype.kind == "c" and not (is_complex(dtype) or dtype == "bool"):
        x = x.real
    if is_whole(dtype) and x.dtype.kind not in "iub":
        # Floats are cut to the range of int64 first, whatever the integer.
        x = lax.convert_element_type(x, "int64")
    if dtype == "bool" and x.dtype != "bool":
        return x != 0
    return lax.convert_element_type(x, dtype)
