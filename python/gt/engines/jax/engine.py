"""The JAX engine. XLA compiles whole plans; single operations avoid compilation on CPUs."""

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any

# A worker shares its GPU with other programs, so JAX must not reserve most of its memory.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax
import jax.numpy as jnp
import numpy as np

from gt.engines import arrays, native
from gt.engines.engine import Engine, Function, Meta, Plan, Signature, Step, bound
from gt.engines.errors import out_of_memory
from gt.engines.jax.cache import keep_compiled_code
from gt.engines.jax.host import Host, Placed
from gt.engines.jax.lowerings import LOWERINGS
from gt.engines.jax.tracing import one_step, with_requirements
from gt.engines.promotion import taken_as

jax.config.update("jax_enable_x64", True)
keep_compiled_code()


class _Compiling(threading.local):
    """The total seconds that XLA has compiled in this thread."""

    seconds = 0.0


_compiling = _Compiling()


def _listen(event: str, duration_secs: float, **_: Any) -> None:
    if event == "/jax/core/compile/backend_compile_duration":
        _compiling.seconds += duration_secs


jax.monitoring.register_event_duration_secs_listener(_listen)


class JAXEngine(Engine):
    """Keeps tensors as JAX arrays on one device; on a CPU also as NumPy arrays.

    Plans are compiled. On a CPU, NumPy computes single operations. On other devices, and if a
    subclass overrides a lowering, an operation is compiled for each shape. The choice depends on
    neither the number of calls nor timing, so results are reproducible.
    """

    name = "jax"
    compiles_by_default = True
    lowerings = LOWERINGS

    def __init__(self, device: int = 0):
        devices = jax.local_devices()
        self.device = devices[device % len(devices)]
        self._host = Host() if self.device.platform == "cpu" else None
        self._placed = Placed(self.device)
        self._compiled: deque[tuple[str, str, float]] = deque(maxlen=16)

    @property
    def arithmetic(self) -> str:
        """Return the version of JAX and the kind of device."""
        return f"{self.name} {jax.__version__} on {self.device.device_kind}"

    def create(self, data: memoryview, dtype: str, shape: tuple[int, ...]) -> Any:
        """Return an array with these values."""
        if self._host is not None:
            return self._host.create(data, dtype, shape)
        values = np.frombuffer(data, jnp.dtype(dtype)).reshape(shape)
        return jax.device_put(values, self.device)

    def read(self, tensor: Any) -> np.ndarray:
        """Return an array's values; blocks until they are computed."""
        return np.ascontiguousarray(tensor).reshape(-1).view("u1")

    def describe(self, tensor: Any) -> Meta:
        """Return an array's dtype and shape."""
        return Meta(tensor.dtype.name, tensor.shape)

    def lowering(self, signature: Signature) -> Function:
        """Return the function that computes a single operation."""
        own = self.lowerings.get(signature.operation)
        if self._host is not None and own is LOWERINGS.get(signature.operation):
            return self._host.lowering(signature)
        return self.alone(signature)

    def alone(self, signature: Signature) -> Function:
        """Return a function that compiles an operation at the first use of each shape."""
        function = self.traceable(signature)

        def compute(*values: Any, **attributes: Any) -> Any:
            before = _compiling.seconds
            with jax.default_device(self.device):
                result = function(*values, **attributes)
            if _compiling.seconds > before:
                shapes = [str(list(value.shape)) for value in values if hasattr(value, "shape")]
                what = f"{signature.operation} of {', '.join(shapes) or 'numbers'}"
                seconds = _compiling.seconds - before
                self._compiled.append((what, "first use of this shape", seconds))
            return result

        return compute

    def compiled(self) -> list[tuple[str, str, float]]:
        """Return the most recent compilations of single operations."""
        return list(self._compiled)

    def traceable(self, signature: Signature) -> Function:
        """Return a function that computes an operation by XLA, called alone or while tracing."""
        if signature.operation not in self.lowerings:
            return self._natively(signature)
        function = arrays.chosen(self.lowerings, signature)
        dtypes, result = taken_as(signature), signature.output

        def compute(*values: Any, **attributes: Any) -> Any:
            frozen = tuple(
                (name, tuple(value) if isinstance(value, list) else value)
                for name, value in sorted(attributes.items())
            )
            return one_step(function, frozen, dtypes, result)(*values)

        return compute

    def _natively(self, signature: Signature) -> Function:
        """Return a function that calls the native engine, also from compiled code."""
        operation, kinds = signature.operation, signature.operands

        natively, thread = Host().natively(signature), self._thread

        def compute(*values: Any, **attributes: Any) -> Any:
            operands = tuple(
                kind if isinstance(kind, type) else Meta(value.dtype.name, value.shape)
                for value, kind in zip(values, kinds, strict=True)
            )
            results = [
                jax.ShapeDtypeStruct(meta.shape, jnp.dtype(meta.dtype))
                for meta in native.results(operation, operands, attributes)
            ]

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
        """A thread for calls of the native engine from compiled code.

        XLA's own threads flush subnormal numbers to zero, which would affect the native engine.
        """
        thread = ThreadPoolExecutor(1)
        # Start the thread now: it inherits the floating-point mode of the thread that creates it.
        thread.submit(int).result()
        return thread

    def compile(self, plan: Plan) -> Callable[[list[Any]], list[Any]]:
        """Compile a plan as a whole, with numbers as arguments."""
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

        def run(values: list[Any]) -> list[Any]:
            outputs, fine = compiled(*map(self._placed, values))
            if fine is not None and not fine:
                # Running step by step raises the error of the step that failed.
                return self.run(plan, values)
            return outputs

        run.code = compiled.as_text  # type: ignore[attr-defined]
        return run

    def cause(self, error: Exception, step: Step, operands: list[Any]) -> Exception:
        """Return GT's error if XLA is out of memory, otherwise the error itself."""
        if "RESOURCE_EXHAUSTED" in str(error):
            return out_of_memory(step.output)
        return super().cause(error, step, operands)

    def _traced(self, plan: Plan, *inputs: Any) -> tuple[list[Any], Any]:
        """Return a plan's outputs, and whether its requirements hold (None if it has none)."""
        places = zip(plan.inputs, inputs, strict=True)
        values = [value if isinstance(given, Meta | type) else given for given, value in places]

        def outputs() -> list[Any]:
            for step in plan.steps:
                function = bound(self.traceable(plan.signature(step)), step)
                values.append(function(*[values[operand] for operand in step.operands]))
            return [values[output] for output in plan.outputs]

        return with_requirements(outputs)
