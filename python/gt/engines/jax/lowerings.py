"""The XLA lowerings of operations."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from gt.engines import arrays, attention
from gt.engines.engine import Function
from gt.engines.jax.tracing import require


def whole_power(base: jax.Array, exponent: jax.Array) -> jax.Array:
    """Raise integers to non-negative integers by repeated squaring, with wraparound."""

    def square(state: tuple[Any, ...]) -> tuple[Any, ...]:
        result, base, rest = state
        return jnp.where(rest & 1, result * base, result), base * base, rest >> 1

    state = (jnp.ones_like(base), base, exponent)
    return lax.while_loop(lambda state: jnp.any(state[2] > 0), square, state)[0]


def cut(x: jax.Array, *varying: Any, sizes: Any, steps: Any, starts: Any = ()) -> jax.Array:
    """Return a region; varying starts are not compiled into the code."""
    if not varying:
        return x[arrays.region(starts, sizes, steps)]
    around, within = _around(sizes, steps)
    return lax.dynamic_slice(x, varying, around)[within]


def slice_assign(
    x: jax.Array, value: jax.Array, *varying: Any, sizes: Any, steps: Any, starts: Any = ()
) -> jax.Array:
    """Replace a region; varying starts are not compiled into the code."""
    if not varying:
        return x.at[arrays.region(starts, sizes, steps)].set(value)
    around, within = _around(sizes, steps)
    block = lax.dynamic_slice(x, varying, around).at[within].set(value)
    return lax.dynamic_update_slice(x, block, varying)


def _around(sizes: Any, steps: Any) -> tuple[list[int], tuple[Any, ...]]:
    """Return the sizes of the block around a strided region, and the region's slices in it."""
    around = [(size - 1) * step + 1 if size else 0 for size, step in zip(sizes, steps, strict=True)]
    return around, arrays.region([0] * len(around), sizes, steps)


def _add(x: jax.Array, place: tuple[Any, ...], source: jax.Array) -> jax.Array:
    return x.at[place].max(source) if x.dtype == "bool" else x.at[place].add(source)


def scatter_add(x: jax.Array, index: jax.Array, source: jax.Array, dim: int) -> jax.Array:
    """Add entry by entry."""
    arrays.below(require, index, x.shape[dim] if x.ndim else 1)
    return _add(x, arrays.places(jnp, index, dim), source)


def index_add(x: jax.Array, index: jax.Array, source: jax.Array, dim: int) -> jax.Array:
    """Add row by row."""
    arrays.below(require, index, x.shape[dim])
    return _add(x, arrays.rows(x, index, dim), source)


def index_copy(x: jax.Array, index: jax.Array, source: jax.Array, dim: int) -> jax.Array:
    """Replace rows. The last of equal indices wins, which XLA's scatter does not guarantee."""
    arrays.below(require, index, x.shape[dim])
    if index.size == 0:
        return x
    last = jnp.full(x.shape[dim], -1).at[index].max(jnp.arange(index.size))
    chosen = jnp.take(source, jnp.maximum(last, 0), axis=dim)
    replaced = (last >= 0).reshape([-1 if at == dim % x.ndim else 1 for at in range(x.ndim)])
    return jnp.where(replaced, chosen, x)


def masked_rows(x: jax.Array, mask: jax.Array, count: int) -> jax.Array:
    """Take the rows where a mask is True."""
    return x[jnp.nonzero(mask, size=count)]


def masked_rows_scatter(x: jax.Array, mask: jax.Array, source: jax.Array) -> jax.Array:
    """Replace the rows where a mask is True."""
    return x.at[jnp.nonzero(mask, size=source.shape[0])].set(source)


def along(function: Function) -> Function:
    """Extend a function along an axis to 0-d arrays."""

    def compute(x: jax.Array, dim: int) -> jax.Array:
        return function(x, axis=dim) if x.ndim else function(x[None], axis=0)[0]

    return compute


def conv_general(
    x: jax.Array,
    weight: jax.Array,
    stride: Any,
    padding_low: Any,
    padding_high: Any,
    dilation: Any,
    base_dilation: Any,
    groups: int,
) -> jax.Array:
    """Convolve; the operation has the semantics of XLA's."""
    return lax.conv_general_dilated(
        x,
        weight,
        stride,
        list(zip(padding_low, padding_high, strict=True)),
        lhs_dilation=base_dilation,
        rhs_dilation=dilation,
        feature_group_count=groups,
        precision=lax.Precision.HIGHEST,
    )


multiplied = partial(jnp.matmul, precision=lax.Precision.HIGHEST)

#: Operation -> the function that computes it.
LOWERINGS: dict[str, Function] = {
    **arrays.lowerings(jnp, require, whole_power),
    **attention.lowerings(jnp, multiplied, jnp.asarray),
    "matmul": multiplied,
    "conv_general": conv_general,
    "erf": lax.erf,
    "slice": cut,
    "slice_assign": slice_assign,
    "scatter_add": scatter_add,
    "index_add": index_add,
    "index_copy": index_copy,
    "nonzero": lambda x, count: jnp.argwhere(x, size=count),
    "masked_rows": masked_rows,
    "masked_rows_scatter": masked_rows_scatter,
    "softmax": along(jax.nn.softmax),
    "log_softmax": along(jax.nn.log_softmax),
    "gelu": lambda x, approximate: jax.nn.gelu(x, approximate=approximate == "tanh"),
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
}
