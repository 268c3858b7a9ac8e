"""JAX: one operation after another, or whole plans by XLA."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, lru_cache, partial
from typing import Any

# A worker shares its GPU with other programs.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from gt.engines import arrays, attention, native
from gt.engines.engine import Engine, Function, Meta, Plan, Signature, Step, out_of_memory
from gt.engines.promotion import is_complex, is_whole, taken_as

jax.config.update("jax_enable_x64", True)
if cache := os.environ.get("GT_COMPILE_CACHE"):
    jax.config.update("jax_compilation_cache_dir", os.path.join(cache, "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


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


def _with_requirements(function: Callable[[], Any]) -> tuple[Any, Any]:
    """Trace a function: give what it gives, and whether all is fine, None if it always is."""
    outer, _required.fine = _required.fine, []
    try:
        result = function()
        return result, jnp.stack(_required.fine).all() if _required.fine else None
    finally:
        _required.fine = outer


@lru_cache(maxsize=4096)
def _one_step(function: Function, arguments: tuple, dtypes: tuple, result: str) -> Function:
    """Compile an operation for any step that is like it."""

    def compute(*values: Any) -> jax.Array:
        taken = [
            as_it_is(value) if dtype is None else converted(value, dtype)
            for value, dtype in zip(values, dtypes, strict=True)
        ]
        return converted(function(*taken, **dict(arguments)), result)

    compiled = jax.jit(lambda *values: _with_requirements(lambda: compute(*values)))

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


def whole_power(base: jax.Array, exponent: jax.Array) -> jax.Array:
    """Raise integers to integers of 0 or more, by squaring, modulo their range."""

    def square(state: tuple) -> tuple:
        result, base, rest = state
        return jnp.where(rest & 1, result * base, result), base * base, rest >> 1

    state = (jnp.ones_like(base), base, exponent)
    return lax.while_loop(lambda state: jnp.any(state[2] > 0), square, state)[0]


def cut(x: jax.Array, *varying: Any, sizes: Any, steps: Any, starts: Any = ()) -> jax.Array:
    """Give a region; code does not depend on starts that vary."""
    if not varying:
        return x[arrays.region(starts, sizes, steps)]
    around, within = _around(sizes, steps)
    return lax.dynamic_slice(x, varying, around)[within]


def slice_assign(
    x: jax.Array, value: jax.Array, *varying: Any, sizes: Any, steps: Any, starts: Any = ()
) -> jax.Array:
    """Replace a region; code does not depend on starts that vary."""
    if not varying:
        return x.at[arrays.region(starts, sizes, steps)].set(value)
    around, within = _around(sizes, steps)
    block = lax.dynamic_slice(x, varying, around).at[within].set(value)
    return lax.dynamic_update_slice(x, block, varying)


def _around(sizes: Any, steps: Any) -> tuple[list[int], tuple]:
    """Give the sizes of the block around a region, and where in it the region is."""
    around = [(size - 1) * step + 1 if size else 0 for size, step in zip(sizes, steps, strict=True)]
    return around, arrays.region([0] * len(around), sizes, steps)


def _add(x: jax.Array, place: tuple, source: jax.Array) -> jax.Array:
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
    """Replace rows; of equal indices the last counts, for which XLA needs to be told."""
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
    """Let a function of an axis take a scalar, too."""

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
    """Convolve; the operation is modelled on XLA's."""
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


class JAXEngine(Engine):
    """Keeps tensors as JAX's arrays, on one device."""

    name = "jax"
    compiles_by_default = True
    lowerings = {
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

    def __init__(self, device: int = 0):
        devices = jax.local_devices()
        self.device = devices[device % len(devices)]

    def create(self, data: memoryview, dtype: str, shape: tuple[int, ...]) -> jax.Array:
        """Give an array of these values."""
        # JAX may keep the memory that it is given.
        values = np.frombuffer(data, jnp.dtype(dtype)).reshape(shape).copy()
        return jax.device_put(values, self.device)

    def read(self, tensor: jax.Array) -> np.ndarray:
        """Give an array's values; waits for them."""
        return np.ascontiguousarray(tensor).reshape(-1).view("u1")

    def describe(self, tensor: jax.Array) -> Meta:
        """Say what an array is."""
        return Meta(tensor.dtype.name, tensor.shape)

    def lowering(self, signature: Signature) -> Function:
        """Give what computes an operation, compiled for each shape when it first comes."""
        if signature.operation not in self.lowerings:
            return self._natively(signature)
        function = arrays.chosen(self.lowerings, signature)
        dtypes, result = taken_as(signature), signature.output

        def compute(*values: Any, **attributes: Any) -> Any:
            frozen = tuple(
                (name, tuple(value) if isinstance(value, list) else value)
                for name, value in sorted(attributes.items())
            )
            with jax.default_device(self.device):
                return _one_step(function, frozen, dtypes, result)(*values)

        return compute

    def _natively(self, signature: Signature) -> Function:
        """Give what computes an operation on the native engine, also within compiled code."""
        operation, kinds = signature.operation, signature.operands

        def read(value: Any) -> Any:
            if isinstance(value, bool | int | float):
                return value
            array = np.asarray(value)
            return array.dtype.name, list(array.shape), array.tobytes()

        def create(data: memoryview, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
            return np.frombuffer(data, jnp.dtype(dtype)).reshape(shape)

        natively = native.computes(signature, read, create)

        def compute(*values: Any, **attributes: Any) -> Any:
            if not any(isinstance(value, jax.core.Tracer) for value in values):
                return jax.device_put(natively(*values, **attributes), self.device)
            operands = tuple(
                kind if isinstance(kind, type) else Meta(value.dtype.name, value.shape)
                for value, kind in zip(values, kinds, strict=True)
            )
            results = [
                jax.ShapeDtypeStruct(meta.shape, jnp.dtype(meta.dtype))
                for meta in native.results(operation, operands, attributes)
            ]
            thread = self._thread

            def call(*values: Any) -> Any:
                given = [
                    kind(value) if isinstance(kind, type) else np.asarray(value)
                    for value, kind in zip(values, kinds, strict=True)
                ]
                return thread.submit(natively, *given, **attributes).result()

            wanted = results[0] if len(results) == 1 else tuple(results)
            return jax.pure_callback(call, wanted, *values)

        return compute

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        """A thread for the native engine within compiled code.

        XLA's own flush small numbers to zero, and so does whatever is called in them.
        """
        thread = ThreadPoolExecutor(1)
        thread.submit(int).result()  # it starts now, from a thread that is none of XLA's
        return thread

    def compile(self, plan: Plan) -> Callable[[list], list]:
        """Compile a plan as a whole; numbers are arguments."""
        examples = [
            jax.ShapeDtypeStruct(given.shape, jnp.dtype(given.dtype))
            if isinstance(given, Meta)
            else given()
            if isinstance(given, type)
            else given
            for given in plan.inputs
        ]
        with jax.default_device(self.device):
            compiled = jax.jit(partial(self._traced, plan)).lower(*examples).compile()

        def run(values: list) -> list:
            outputs, fine = compiled(*values)
            if fine is not None and not fine:
                # Step by step it is said what is wrong.
                return self.run(plan, values)
            return outputs

        run.code = compiled.as_text  # type: ignore[attr-defined]
        return run

    def cause(self, error: Exception, step: Step, operands: list) -> Exception:
        """Say in GT's words that there is no memory."""
        if "RESOURCE_EXHAUSTED" in str(error):
            return out_of_memory(step.output)
        return super().cause(error, step, operands)

    def _traced(self, plan: Plan, *values: Any) -> tuple[list, Any]:
        """Give a plan's outputs, and whether all is fine; None if nothing can be wrong."""
        places = zip(plan.inputs, values, strict=True)
        known = [value if isinstance(given, Meta | type) else given for given, value in places]
        return _with_requirements(lambda: super(JAXEngine, self).run(plan, known))
