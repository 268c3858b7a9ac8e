"""Operations in code that JAX traces: conversions of dtypes, and requirements on values."""

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
    """Requirements collected while tracing, as traced code cannot raise errors."""

    def __init__(self) -> None:
        self.fine: list[Any] = []


_required = _Requirements()


def require(fine: Any, error: Callable[[], Exception]) -> None:
    """Raise an error unless all of `fine` is true; while tracing, record the requirement."""
    if isinstance(fine, jax.core.Tracer):
        _required.fine.append(fine.all())
    elif not fine.all():
        raise error()


def with_requirements(function: Callable[[], Any]) -> tuple[Any, Any]:
    """Trace a function; return its result and whether its requirements hold (None without any)."""
    outer, _required.fine = _required.fine, []
    try:
        result = function()
        return result, jnp.stack(_required.fine).all() if _required.fine else None
    finally:
        _required.fine = outer


@lru_cache(maxsize=4096)
def one_step(
    function: Function, arguments: tuple[Any, ...], dtypes: tuple[Any, ...], result: str
) -> Function:
    """Return a jitted operation, shared by all steps with the same arguments and dtypes."""

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
            # The lowering needs a concrete value, in order to raise an error.
            return compute(*values)
        if isinstance(fine, jax.core.Tracer):
            _required.fine.append(fine)
        elif fine is not None and not fine:
            compute(*values)  # raises the error
        return out

    return step


def as_it_is(value: Any) -> Any:
    """Return an array or a number as an array; a tuple of results is returned unchanged."""
    return value if isinstance(value, tuple) else jnp.asarray(value)


def converted(value: Any, dtype: str) -> Any:
    """Convert an array or a number to a dtype by the rules of the cast operation."""
    if isinstance(value, tuple):
        return value  # several results: `further` selects and converts each
    x = jnp.asarray(value)
    if x.dtype.kind == "c" and not (is_complex(dtype) or dtype == "bool"):
        x = x.real
    if is_whole(dtype) and x.dtype.kind not in "iub":
        # Floats saturate at the range of int64 first, whatever the integer dtype.
        x = lax.convert_element_type(x, "int64")
    if dtype == "bool" and x.dtype != "bool":
        return x != 0
    return lax.convert_element_type(x, dtype)
