"""What an engine is: the one interface between a worker and what computes.

A worker holds tensors as its engine makes them, without looking inside, and gives the engine
whole plans: steps on tensors, whose operations, shapes and dtypes it has checked. To write an
engine of one's own, subclass `Engine`, or one of the engines here, and name it `module:Class`.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from gt.engines.collectives import Collectives, Settings

#: A tensor as an engine holds it; only the engine looks inside.
Tensor: TypeAlias = Any
Number: TypeAlias = bool | int | float
#: Takes the operands and gives the result.
Function: TypeAlias = Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class Meta:
    """A tensor's dtype, by its name in GT, and its shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """How much memory the values take."""
        return math.prod(self.shape) * ITEM_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Kind:
    """What decides how a tensor takes part in an operation: its dtype, and whether it has axes."""

    dtype: str
    has_axes: bool = True


@dataclass(frozen=True, slots=True)
class Signature:
    """An operation on operands of some kinds: all that is known before there are shapes.

    An operand is described by its kind, or by the type of a Python number. `output` is the dtype
    of the result, of several results of the first.
    """

    operation: str
    operands: tuple[Kind | type, ...]
    output: str


#: What stands for an operand of a plan: a tensor's meta, or the type of a Python number.
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
    """One operation: which values it takes, with which attributes, and what it must give.

    Of `slice` and `slice_assign` the attribute `starts` may vary from run to run: then it is
    missing here, and its numbers are the last operands, one for each axis.
    """

    operation: str
    operands: tuple[int, ...]
    attributes: Mapping[str, Any]
    output: Meta


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Steps, run one after another.

    Values are numbered: the inputs first, then one for each step. An input is described by its
    meta; a Python number by its type if it may be another each time, or by itself if it is always
    the same. `outputs` are the numbers of the values that are given back. `prepared` is room for
    what engines work out about the plan.
    """

    inputs: tuple[Operand | Number, ...]
    steps: tuple[Step, ...]
    outputs: tuple[int, ...]
    prepared: dict["Engine", Any] = field(default_factory=dict, init=False, repr=False)

    def signature(self, step: Step) -> Signature:
        """Give a step's signature."""
        kinds = tuple(map(self._kind, step.operands))
        return Signature(step.operation, kinds, step.output.dtype)

    def _kind(self, value: int) -> Kind | type:
        given = len(self.inputs)
        found = self.inputs[value] if value < given else self.steps[value - given].output
        if isinstance(found, Meta):
            return Kind(found.dtype, bool(found.shape))
        return found if isinstance(found, type) else type(found)

    def last_uses(self) -> list[tuple[int, ...]]:
        """Say for each step which values nobody needs after it."""
        seen = set(self.outputs)
        dead: list[tuple[int, ...]] = []
        for number, step in reversed(list(enumerate(self.steps, len(self.inputs)))):
            used = {number, *step.operands} - seen
            seen |= used
            dead.append(tuple(sorted(used)))
        return dead[::-1]


class StepError(RuntimeError):
    """A step failed: `step` is its number in the plan, the text says why, in words for users."""

    def __init__(self, step: int, reason: str):
        super().__init__(reason)
        self.step = step


#: A function, the numbers of its operands, and of the values that are not needed after it.
Stage: TypeAlias = tuple[Function, tuple[int, ...], tuple[int, ...]]


class Engine:
    """Holds tensors of its own kind and runs plans on them.

    A subclass says at least how tensors come in and out (`create`, `read`, `describe`) and what
    computes an operation (`lowering`). Tensors are never written to: a result may share its memory
    with an operand. An engine is used by one thread at a time, but another may `compile`.

    A worker calls the functions that `lowering` gives, one operation after another, without a plan
    and without asking twice. Plans are for `compile` alone.
    """

    name = "engine"
    #: Whether to compile plans that come again and again, even if nobody has asked for it.
    compiles_by_default = False
    #: How much work it does in a second, as an estimate: the bytes that elementwise operations read
    #: and write. Long sequences are cut into parts of a hundredth of it.
    rate = 10_000_000_000
    #: The dtype that float32 factors of products and convolutions are rounded to, if they are.
    factors: str | None = None
    #: How many bytes its device's memory has; None if tensors are in the host's.
    memory: int | None = None
    #: Whether it makes random numbers where its tensors are, by `draw`. Those of other engines are
    #: made by the native one, and come in by `create`.
    draws = False
    #: Whether operations return before its device has done them. Then only the device can tell how
    #: long they take, and `turns_done` says so: sessions that share it pay for that time.
    runs_ahead = False
    #: What computes an operation, by its name.
    lowerings: Mapping[str, Function] = {}

    def __init__(self, device: int = 0):
        """Make an engine for one of the machine's GPUs, by its number; others ignore it."""

    @property
    def arithmetic(self) -> str:
        """Return what the bits of results depend on: library, version and kind of processor.

        Sessions keep to workers that say the same, and are told if they cannot.
        """
        return self.name

    def lowers(self, operation: str) -> bool:
        """Say whether steps may have this operation.

        A composite that does not is expanded by the worker. Random numbers come by `draw` or
        `create`. Primitives that an engine has no lowering for go by `natively`.
        """
        return operation in self.lowerings

    def natively(self, signature: Signature) -> Function:
        """Give what computes an operation on the native engine, by way of the host's memory."""
        from gt.engines import native

        def read(value: Any) -> Any:
            if isinstance(value, bool | int | float):
                return value
            meta = self.describe(value)
            return meta.dtype, list(meta.shape), self.read(value)

        return native.computes(signature, read, self.create)

    def register(self, name: str, function: Function) -> None:
        """Have a function compute the custom operation of this name: see `gt.custom_op`.

        It is called with the operands, and the attributes by their names. It gives a tensor, or a
        tuple of as many as are declared.
        """
        if not isinstance(name, str) or not callable(function):
            raise TypeError(f"register: {name!r}, {function!r} given, expected a name, a function")
        # An engine of one's own may not call Engine.__init__.
        vars(self).setdefault("_custom", {})[name] = function

    def custom(self, name: str) -> Function:
        """Give what computes a custom operation: it takes the operands and encoded attributes.

        Raises `LookupError` if nobody has registered it.
        """
        known = vars(self).get("_custom", {})
        function = known.get(name)
        if function is None:
            names = ", ".join(sorted(known)) or "none"
            raise LookupError(
                f"the engine '{self.name}' has no custom operation '{name}', registered: {names}\n"
                f"  hint: engine.register('{name}', function), in a module named in GT_KERNELS"
            )

        def call(*operands: Tensor, arguments: str) -> tuple:
            made = function(*operands, **decoded(arguments))
            return tuple(made) if isinstance(made, tuple | list) else (made,)

        return call

    def create(self, data: memoryview, dtype: str, shape: tuple[int, ...]) -> Tensor:
        """Give a tensor of these values: row-major, bool as one byte, bfloat16 as two.

        The data is the tensor's own from now on: it may share the memory, which others have, too,
        if it may only be read.
        """
        raise NotImplementedError

    def read(self, tensor: Tensor) -> Any:
        """Give a tensor's values as `create` takes them: flat bytes in an object with the buffer
        protocol. Waits until they are there.
        """
        raise NotImplementedError

    def draw(
        self, operation: str, numbers: tuple[int, ...], output: Meta, part: tuple[int, ...]
    ) -> Tensor:
        """Give the random numbers of `rand`, `randn` or `randint`: the same bits as other engines.

        `numbers` are seed, instruction and, of `randint`, the limits. `part` says for each axis
        where in the whole tensor this part starts, then how long the whole is; nothing for the
        whole.
        """
        raise NotImplementedError

    def describe(self, tensor: Tensor) -> Meta:
        """Say what a tensor really is; the worker compares it with what was declared.

        Tensors with `dtype` and `shape`, as NumPy's, are asked for these once their dtype has been
        described.
        """
        raise NotImplementedError

    def lowering(self, signature: Signature) -> Function:
        """Give what computes an operation on operands of such kinds.

        It is called with the operands, tensors and Python numbers, and with the attributes by
        their names, but `dtype`, which is the signature's output. It gives a tensor, or a tuple of
        as many as the operation has results. The worker asks once for a signature, whatever the
        shapes.
        """
        raise NotImplementedError

    def run(self, plan: Plan, values: list) -> list:
        """Run a plan step by step on its inputs, tensors and numbers, and give its outputs.

        The list is handed over: values are taken out of it after their last use, so that memory
        is free for the next steps. Raises `StepError`, from what was wrong.
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

    def compile(self, plan: Plan) -> Callable[[list], list] | None:
        """Give a faster `run` of this plan, or None if there is nothing to gain.

        It may take long, and may fail: the worker goes on with `run`. Numbers are inputs like
        tensors: new ones compile nothing anew. If what is given has `code`, a text or a function
        that gives one, GT_SAVE_COMPILED_CODE keeps it.
        """
        return None

    def compiled(self) -> list[tuple[str, str, float]]:
        """Say what was compiled most recently besides plans, for statistics.

        Each is what, why, and how many seconds it took. Plans are counted by the worker.
        """
        return []

    def collectives(self, settings: "Settings") -> "Collectives | None":
        """Give how tensors move between this engine and those of other workers, if it knows.

        Worker processes ask once. Raises `ValueError` if the settings ask for what is not there.
        """
        return None

    def buffer(self, tensor: Tensor) -> tuple[int, int] | None:
        """Give the memory that a tensor is in: a number that is that memory's alone, and its bytes.

        It is asked of results of operations that may be views. None says that each tensor has
        memory of its own. What a session holds is counted by it: a view keeps all of its memory.
        """
        return None

    def begin_turn(self) -> None:
        """Note that a turn begins, if the engine runs ahead."""

    def end_turn(self) -> None:
        """Note that all operations of a turn have been asked for."""

    def turns_done(self, under_way: int) -> list[int]:
        """Give the nanoseconds that the device took for each turn it has done since the last call.

        Waits until at most `under_way` turns are not done.
        """
        return []

    @property
    def makes_views(self) -> bool:
        """Whether slices, permutations and expansions share memory, as `buffer` then says."""
        return type(self).buffer is not Engine.buffer

    def is_contiguous(self, tensor: Tensor) -> bool:
        """Whether a tensor's elements lie in row-major order, so that reshaping copies nothing.

        It is asked where views are made and memory is short.
        """
        return True

    def copy(self, tensor: Tensor) -> Tensor:
        """Give a copy in memory of its own, as long as the tensor needs."""
        meta = self.describe(tensor)
        return self.create(memoryview(self.read(tensor)), meta.dtype, meta.shape)

    def release_memory(self) -> None:
        """Give back memory that is kept for reuse: a session has ended."""

    def stages(self, plan: Plan) -> Sequence[Stage]:
        """Give what to call for each step, worked out at the first time."""
        stages = plan.prepared.get(self)
        if stages is None:
            stages = plan.prepared[self] = [
                (bound(self.lowering(plan.signature(step)), step), step.operands, dead)
                for step, dead in zip(plan.steps, plan.last_uses(), strict=True)
            ]
        return stages

    def cause(self, error: Exception, step: Step, operands: list) -> Exception:
        """Give the reason why a step failed on these operands in GT's words, if it has some.

        These are an `IndexError`, `ArithmeticError` or `MemoryError`, made below.
        """
        return out_of_memory(step.output) if isinstance(error, MemoryError) else error


def decoded(arguments: str) -> dict[str, Any]:
    """Give the attributes of a custom operation by name; each call has lists of its own."""
    attributes = json.loads(arguments)
    if not isinstance(attributes, dict):
        raise ValueError("a custom operation's attributes are not an object of JSON")
    return attributes


def bound(function: Function, step: Step) -> Function:
    """Give a function of a step's operands alone, with the step's attributes."""
    attributes = {name: value for name, value in step.attributes.items() if name != "dtype"}
    return partial(function, **attributes) if attributes else function


def out_of_range(index: int, length: int) -> IndexError:
    """Make the error of an index beyond an axis."""
    return IndexError(f"index {index} is out of range for an axis of length {length}")


def division_by_zero() -> ZeroDivisionError:
    """Make the error of whole numbers divided by zero."""
    return ZeroDivisionError("integer division by zero")


def negative_power() -> ArithmeticError:
    """Make the error of whole numbers raised to a negative number."""
    return ArithmeticError("integers to negative integer powers are not allowed")


class OutOfMemory(MemoryError):
    """There is no room for a tensor of so many bytes; GT adds who holds most."""

    def __init__(self, bytes: int):
        super().__init__(f"out of memory: {bytes} bytes asked for")
        self.bytes = bytes


def out_of_memory(asked: Meta) -> OutOfMemory:
    """Make the error of no room for a tensor."""
    return OutOfMemory(asked.bytes)
