"""The engine interface: what a worker requires of the library that computes.

To a worker the tensors of its engine are opaque. The worker checks operations, shapes and dtypes
before it calls the engine. To write a custom engine, subclass `Engine` or one of the engines in
this package, and name it by `module:Class`.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from gt.engines.errors import out_of_memory
from gt.engines.step_error import StepError

if TYPE_CHECKING:
    from gt.engines.collectives import Collectives, Settings

#: An engine's tensor handle, which is opaque to the worker.
Tensor: TypeAlias = Any
Number: TypeAlias = bool | int | float
#: Takes the operands and returns the result.
Function: TypeAlias = Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class Meta:
    """A tensor's dtype, by its name in GT, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """The size of the values in bytes."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Kind:
    """What type promotion depends on: a tensor's dtype, and whether it has axes."""

    dtype: str
    has_axes: bool = True


@dataclass(frozen=True, slots=True)
class Signature:
    """An operation with the kinds of its operands, independent of shapes.

    An operand is described by its kind, or by the type of a Python number. `output` is the dtype
    of the (first) result.
    """

    operation: str
    operands: tuple[Kind | type, ...]
    output: str


#: The description of an operand: a tensor's meta, or the type of a Python number.
Operand: TypeAlias = Meta | type

ITEM_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a plan: the numbers of its operands, its attributes, and its result.

    The attribute `starts` of `slice` and `slice_assign` may vary from run to run. It is absent
    then, and the starts are the last operands, one for each axis.
    """

    operation: str
    operands: tuple[int, ...]
    attributes: Mapping[str, Any]
    output: Meta


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A sequence of steps.

    Values are numbered: first the inputs, then one for each step. A tensor input is described by
    its meta, a Python number that varies from run to run by its type, and a constant by its value.
    `outputs` are the numbers of the values to return. `prepared` is a cache that engines may use
    for data derived from the plan.
    """

    inputs: tuple[Operand | Number, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    prepared: dict["Engine", Any] = field(default_factory=dict, init=False, repr=False)

    def signature(self, step: Step) -> Signature:
        """Return a step's signature."""
        kinds = tuple(map(self._kind, step.operands))
        return Signature(step.operation, kinds, step.output.dtype)

    def _kind(self, value: int) -> Kind | type:
        given = len(self.inputs)
        found = self.inputs[value] if value < given else self.steps[value - given].output
        if isinstance(found, Meta):
            return Kind(found.dtype, bool(found.shape))
        return found if isinstance(found, type) else type(found)

    def last_uses(self) -> list[tuple[int, ...]]:
        """Return, for each step, the numbers of the values that no later step or output needs."""
        seen = set(self.outputs)
        dead: list[tuple[int, ...]] = []
        for number, step in reversed(list(enumerate(self.steps, len(self.inputs)))):
            used = {number, *step.operands} - seen
            seen |= used
            dead.append(tuple(sorted(used)))
        return dead[::-1]


#: A function, the numbers of its operands, and the numbers of the values to drop after it.
Stage: TypeAlias = tuple[Function, tuple[int, ...], tuple[int, ...]]


class Engine:
    """Base class of engines, which hold tensors and compute operations on them.

    A subclass implements at least `create`, `read`, `describe` and `lowering`. Tensors are
    immutable, so a result may share memory with an operand. One thread at a time uses an engine,
    except that another thread may call `compile`.

    A worker calls the functions that `lowering` returns operation by operation, and caches them by
    signature. Plans are only used by `compile`, and by `run` when compiled code fails.
    """

    name = "engine"
    #: Whether to compile recurring plans even if the user has not asked for it.
    compiles_by_default = False
    #: The estimated throughput in bytes per second that elementwise operations read and write.
    #: The worker splits long sequences into turns of about a hundredth of it.
    rate = 10_000_000_000
    #: The dtype that float32 factors of products and convolutions are rounded to, or None.
    factors: str | None = None
    #: The size of the device memory in bytes; None if tensors are in host memory.
    memory: int | None = None
    #: The UUID of the NVIDIA GPU that it computes on, with or without `GPU-` or `MIG-`, or None.
    #: The status shows the use and memory of this GPU.
    gpu_uuid: str | None = None
    #: Whether it generates random numbers on its device, by `draw`. Otherwise the native engine
    #: generates them, and the worker passes them to `create`.
    draws = False
    #: Whether operations return before the device has completed them. `turns_done` must then
    #: return the device time of each turn, which the worker charges to sessions.
    runs_ahead = False
    #: Operation -> the function that computes it.
    lowerings: Mapping[str, Function] = {}

    def __init__(self, device: int = 0):
        """Create an engine on GPU number `device`; engines without GPUs ignore it."""

    @property
    def arithmetic(self) -> str:
        """Return what the bits of results depend on: the library, its version and the processor.

        The dispatcher restricts a session to workers with equal values, and warns if it cannot.
        """
        return self.name

    def lowers(self, operation: str) -> bool:
        """Return whether the engine computes this operation itself.

        The worker expands composites for which this is false. Random numbers are generated by
        `draw` or passed to `create`. For other primitives `lowering` may return `natively`.
        """
        return operation in self.lowerings

    def natively(self, signature: Signature) -> Function:
        """Return a function that computes an operation natively, on copies in host memory."""
        from gt.engines import native

        def read(value: Any) -> Any:
            if isinstance(value, bool | int | float):
                return value
            meta = self.describe(value)
            return meta.dtype, list(meta.shape), self.read(value)

        return native.computes(signature, read, self.create)

    def register(self, name: str, function: Function) -> None:
        """Register the function that computes the custom operation `name`; see `gt.custom_op`.

        The function is called with the operands, and with the attributes as keyword arguments. It
        returns a tensor, or a tuple with the declared number of tensors.
        """
        if not isinstance(name, str) or not callable(function):
            raise TypeError(f"register: {name!r}, {function!r} given, expected a name, a function")
        # Subclasses do not have to call Engine.__init__.
        vars(self).setdefault("_custom", {})[name] = function

    def custom(self, name: str) -> Function:
        """Return a function of the operands and JSON-encoded attributes of a custom operation.

        Raises `LookupError` if the operation is not registered.
        """
        known = vars(self).get("_custom", {})
        function = known.get(name)
        if function is None:
            names = ", ".join(sorted(known)) or "none"
            raise LookupError(
                f"the engine '{self.name}' has no custom operation '{name}', registered: {names}\n"
                f"  hint: engine.register('{name}', function), in a module named in GT_KERNELS"
            )

        def call(*operands: Tensor, arguments: str) -> tuple[Any, ...]:
            made = function(*operands, **decoded(arguments))
            return tuple(made) if isinstance(made, tuple | list) else (made,)

        return call

    def create(self, data: memoryview, dtype: str, shape: tuple[int, ...]) -> Tensor:
        """Return a tensor with these values: row-major, bool as one byte, bfloat16 as two.

        The tensor may keep and share the memory of `data`. If `data` is read-only, other objects
        may share the memory.
        """
        raise NotImplementedError

    def read(self, tensor: Tensor) -> Any:
        """Return a tensor's values in the format of `create`: flat bytes in an object with the
        buffer protocol. Blocks until they are computed.
        """
        raise NotImplementedError

    def draw(
        self, operation: str, numbers: tuple[int, ...], output: Meta, part: tuple[int, ...]
    ) -> Tensor:
        """Return the random numbers of `rand`, `randn` or `randint`, bitwise equal on all engines.

        `numbers` are the seed, the instruction number and, for `randint`, the limits. `part` is
        empty, or describes a shard: its start on each axis, then the shape of the unsharded tensor.
        """
        raise NotImplementedError

    def describe(self, tensor: Tensor) -> Meta:
        """Return a tensor's actual dtype and shape, which the worker compares with the declared.

        If tensors have attributes `dtype` and `shape`, as in NumPy, the worker reads these instead
        once it has seen the dtype in a description.
        """
        raise NotImplementedError

    def lowering(self, signature: Signature) -> Function:
        """Return the function that computes an operation on operands of these kinds.

        The function is called with the operands (tensors and Python numbers), and with the
        attributes as keyword arguments, except `dtype`, which is the signature's output. It returns
        a tensor, or a tuple if the operation has several results. The worker calls `lowering` once
        per signature and uses the function for all shapes.
        """
        raise NotImplementedError

    def run(self, plan: Plan, values: list[Any]) -> list[Any]:
        """Run a plan step by step on its inputs (tensors and numbers), and return its outputs.

        The list `values` is consumed: each value is dropped after its last use to free its memory.
        Raises `StepError` from the error of the step that failed.
        """
        try:
            for function, operands, dead in self.stages(plan):
                values.append(function(*[values[operand] for operand in operands]))
                for value in dead:
                    values[value] = None
        except Exception as error:
            number = len(values) - len(plan.inputs)
            step = plan.steps[number]
            cause = self.cause(error, step, [values[operand] for operand in step.operands])
            raise StepError(number, str(cause) or type(cause).__name__) from cause
        return [values[output] for output in plan.outputs]

    def compile(self, plan: Plan) -> Callable[[list[Any]], list[Any]] | None:
        """Return a faster `run` of this plan, or None if compiling it gains nothing.

        Compiling may be slow and may raise: the worker keeps running the operations one by one.
        Numbers are inputs like tensors: other values must not cause recompilation. If the returned
        function has an attribute `code`, a string or a function that returns one,
        GT_SAVE_COMPILED_CODE saves it.
        """
        return None

    def compiled(self) -> list[tuple[str, str, float]]:
        """Return the most recent compilations other than plans, for statistics.

        Each is (what, why, seconds). The worker itself counts plans.
        """
        return []

    def collectives(self, settings: "Settings") -> "Collectives | None":
        """Return the engine's collectives with other workers, or None if it has none.

        Called once per worker process. Raises `ValueError` if the settings request a backend that
        is not available.
        """
        return None

    def buffer(self, tensor: Tensor) -> tuple[int, int] | None:
        """Return the buffer of a tensor, as its unique id and its size in bytes.

        Called for results of operations that may be views. None means that no tensors share
        memory. The worker charges a session for whole buffers: a view keeps all of its buffer.
        """
        return None

    def begin_turn(self) -> None:
        """Record the begin of a turn, if the engine runs ahead."""

    def end_turn(self) -> None:
        """Record the end of a turn: all of its operations have been submitted."""

    def turns_done(self, under_way: int) -> list[int]:
        """Return the device time in nanoseconds of each turn completed since the last call.

        Blocks until at most `under_way` turns are incomplete.
        """
        return []

    @property
    def makes_views(self) -> bool:
        """Whether slices, permutations and expansions are views; `buffer` must then report them."""
        return type(self).buffer is not Engine.buffer

    def is_contiguous(self, tensor: Tensor) -> bool:
        """Whether a tensor's elements are in row-major order, so that reshaping makes no copy.

        Called when memory is scarce, if `makes_views`.
        """
        return True

    def copy(self, tensor: Tensor) -> Tensor:
        """Return a copy whose buffer is exactly as long as the tensor."""
        meta = self.describe(tensor)
        return self.create(memoryview(self.read(tensor)), meta.dtype, meta.shape)

    def release_memory(self) -> None:
        """Free memory cached for reuse; called when a session ends."""

    def stages(self, plan: Plan) -> Sequence[Stage]:
        """Return the function and value numbers of each step, computed once per plan."""
        stages = plan.prepared.get(self)
        if stages is None:
            stages = plan.prepared[self] = [
                (bound(self.lowering(plan.signature(step)), step), step.operands, dead)
                for step, dead in zip(plan.steps, plan.last_uses(), strict=True)
            ]
        return stages

    def is_device_lost(self, error: BaseException) -> bool:
        """Return whether, after this error of a call, the device fails all calls of this process.

        A worker process then ends: its successor can use the device again, and sessions resume on
        it or on other workers.
        """
        return False

    def cause(self, error: Exception, step: Step, operands: list[Any]) -> Exception:
        """Return the error to report for a step that failed on these operands.

        Where possible it is one of GT's: an `IndexError`, `ArithmeticError` or `MemoryError`
        created by the functions of `gt.engines.errors`.
        """
        return out_of_memory(step.output) if isinstance(error, MemoryError) else error


def decoded(arguments: str) -> dict[str, Any]:
    """Return the attributes of a custom operation by name, as new objects for each call."""
    attributes = json.loads(arguments)
    if not isinstance(attributes, dict):
        raise ValueError("a custom operation's attributes are not a JSON object")
    return attributes


def bound(function: Function, step: Step) -> Function:
    """Return a function of a step's operands, with the step's attributes bound."""
    attributes = {name: value for name, value in step.attributes.items() if name != "dtype"}
    return partial(function, **attributes) if attributes else function
