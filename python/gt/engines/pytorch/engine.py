"""The PyTorch engine: conversion of tensors, and the choice of lowerings."""

import os
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from gt.engines.arrays import chosen
from gt.engines.collectives import Collectives, Settings
from gt.engines.engine import (
    Engine,
    Function,
    Kind,
    Meta,
    Plan,
    Signature,
    Step,
    bound,
)
from gt.engines.errors import out_of_memory
from gt.engines.promotion import is_float, taken_as
from gt.engines.pytorch.devices import open_device
from gt.engines.pytorch.direct import direct
from gt.engines.pytorch.draws import draw
from gt.engines.pytorch.lowerings import LOWERINGS, namesake
from gt.engines.pytorch.values import DTYPES, NAMES, converted, fitting, take_required

_PRODUCTS = ("matmul", "weight_backward")
#: Operations that fail for some values.
_LOOKING = frozenset(
    """gather scatter_add index_select index_add index_copy wrap_index
    scatter scatter_reduce floor_divide remainder fmod pow""".split()
)


class PyTorchEngine(Engine):
    """Keeps tensors as PyTorch tensors, on a GPU if there is one.

    `device` is the number of a GPU that PyTorch sees, or the name of a device. With `autocast` (or
    GT_AUTOCAST) `bfloat16` or `float16`, products of float32 matrices are computed in that dtype
    and returned as float32. With `GT_TF32=1` GPUs round factors of such products to TF32.
    """

    name = "pytorch"
    lowerings = LOWERINGS
    open_device = staticmethod(open_device)

    def __init__(self, device: int | str | None = None, autocast: str | None = None):
        given = "autocast" if autocast else "GT_AUTOCAST"
        autocast = autocast or os.environ.get("GT_AUTOCAST") or None
        if autocast not in (None, "bfloat16", "float16"):
            raise ValueError(
                f"{given}: the dtype is {autocast!r}, expected 'bfloat16' or 'float16'"
            )
        self.autocast = DTYPES[autocast] if autocast else None
        #: The device's copies, memory and graph capture.
        self.hardware = self.open_device(device)
        self.device = self.hardware.torch
        self.gpu_uuid = self.hardware.uuid
        is_gpu = self.hardware.is_gpu
        # TF32, which GT_TF32 enables, has the precision of float16.
        self.factors = autocast or ("float16" if is_gpu else None)
        # Compiling is slow; it pays on GPUs, where the launches of many small operations dominate.
        self.compiles_by_default = is_gpu
        # On a CPU the native engine draws faster.
        self.draws = self.device.type != "cpu" or is_gpu
        if is_gpu:
            self.rate = 1_000_000_000_000
            self.memory = self.hardware.memory()
        #: The timer of turns, if the device computes asynchronously.
        self._turns = self.hardware.turns()
        self.runs_ahead = self._turns is not None
        #: Whether PyTorch's operations check values themselves, and raise at once.
        self.finds_errors = self.device.type == "cpu" and not is_gpu

    @property
    def arithmetic(self) -> str:
        """Return PyTorch's version, the device model, and the dtype that factors are rounded to."""
        rounded = f", factors {self.factors}" if self.factors else ""
        return f"{self.name} {torch.__version__} on {self.hardware.model}{rounded}"

    def create(self, data: memoryview, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        """Return a tensor with these values on the engine's device."""
        if not len(data):
            return torch.empty(shape, dtype=DTYPES[dtype], device=self.device)
        if data.readonly and not self.hardware.is_gpu:
            data = memoryview(bytearray(data))  # a copy: the tensor would alias shared memory
        values = _viewed(data, DTYPES[dtype]).reshape(shape)
        return self._trying_twice(lambda: self.hardware.to_device(values), Meta(dtype, shape))

    def read(self, tensor: torch.Tensor) -> np.ndarray:
        """Return a tensor's values; blocks until they are computed."""
        if not tensor.numel():
            return np.empty(0, "u1")
        flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
        if flat.stride(0) != 1:  # possible for a single element
            flat = flat.clone(memory_format=torch.contiguous_format)
        return self.hardware.to_host(flat).view(torch.uint8).numpy()

    def _trying_twice(self, make: Callable[[], torch.Tensor], asked: Meta) -> torch.Tensor:
        """Create a tensor; if memory is exhausted, free cached memory and try once more."""
        for is_last in (False, True):
            try:
                return make()
            except RuntimeError as error:
                if not self.hardware.is_out_of_memory(error):
                    raise
                if is_last:
                    raise out_of_memory(asked) from None
            # Outside of `except`, so that the error's traceback keeps no tensors alive.
            self.hardware.release_memory()
        raise AssertionError("the second try returns or raises")

    def draw(
        self, operation: str, numbers: tuple[int, ...], output: Meta, part: tuple[int, ...]
    ) -> torch.Tensor:
        """Return random numbers, generated on the engine's device."""
        return self._trying_twice(
            lambda: draw(operation, numbers, output, part, self.device), output
        )

    def collectives(self, settings: Settings) -> Collectives | None:
        """Return NCCL collectives for GPUs; Gloo for CPUs only if the user requests it."""
        fitting = "nccl" if self.device.type == "cuda" else "gloo"
        if settings.kind not in ("auto", fitting):
            raise ValueError(
                f"GT_COLLECTIVES is '{settings.kind}', but this worker computes on "
                f"{self.device.type}: expected {fitting}, auto or off"
            )
        if not _has_collectives(fitting):
            if settings.kind == "auto":
                return None
            raise ValueError(
                f"GT_COLLECTIVES is '{fitting}', but this PyTorch ({torch.__version__}) was built "
                "without it: expected auto or off"
            )
        # Gloo does not encrypt, and on one machine shared memory is as fast.
        if settings.kind == "auto" and fitting == "gloo":
            return None
        # Some builds of PyTorch lack modules that this imports.
        from gt.engines.pytorch.collectives import TorchCollectives

        return TorchCollectives(self.device, settings)

    def buffer(self, tensor: torch.Tensor) -> tuple[int, int]:
        """Return the address and size of a tensor's storage."""
        storage = tensor.untyped_storage()
        return storage.data_ptr(), storage.nbytes()

    def is_contiguous(self, tensor: torch.Tensor) -> bool:
        """Return whether a tensor is contiguous."""
        return tensor.is_contiguous()

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a contiguous copy."""
        return tensor.clone(memory_format=torch.contiguous_format)

    def begin_turn(self) -> None:
        """Record the begin of a turn in the GPU's stream."""
        if self._turns:
            self._turns.begin()

    def end_turn(self) -> None:
        """Record the end of a turn in the GPU's stream."""
        if self._turns:
            self._turns.end()

    def turns_done(self, under_way: int) -> list[int]:
        """Return the nanoseconds of completed turns; wait until at most `under_way` are not."""
        return self._turns.done(under_way) if self._turns else []

    def release_memory(self) -> None:
        """Free the GPU memory that PyTorch caches."""
        self.hardware.release_memory()

    def describe(self, tensor: torch.Tensor) -> Meta:
        """Return a tensor's dtype and shape."""
        return Meta(NAMES[tensor.dtype], tuple(tensor.shape))

    def lowering(self, signature: Signature) -> Function:
        """Return the function that computes an operation: PyTorch's own if it is exact."""
        name = signature.operation
        exact = (
            (name in _LOOKING and not self.finds_errors)
            or (name in _PRODUCTS and self.autocast is not None)
            # A subclass overrides the lowering.
            or self.lowerings.get(name) is not LOWERINGS.get(name)
        )
        if not exact and name == "full" and isinstance(signature.operands[0], type):
            return self._full(signature.output)
        if not exact and (function := direct(signature)):
            return function
        function = self.exact(signature)
        return _looking(function) if name in _LOOKING else function

    def exact(self, signature: Signature) -> Function:
        """Return a function that follows GT's rules exactly, and that can be traced.

        It records requirements on values; the caller checks them.
        """
        name, output = signature.operation, signature.output
        if name in self.lowerings:
            function = chosen(self.lowerings, signature)
        elif (found := namesake(name)) is not None:
            function = found
        else:
            return self.natively(signature)
        if name == "eye":
            function = partial(function, device=self.device)
        taken = taken_as(signature)
        if name in (*_PRODUCTS, "conv_general"):
            # PyTorch multiplies 16-bit floats without conversion, and accumulates in float32.
            taken = (output,) * 2
            if self.autocast and output == "float32":
                taken = (NAMES[self.autocast],) * 2
        into = [self._into(dtype) for dtype in taken]
        if name == "pow" and is_float(output):
            # PyTorch has fast paths for exponents that are Python numbers.
            into[1] = partial(_convert_tensor, into[1])
        result = DTYPES[output]

        def compute(*values: Any, **attributes: Any) -> torch.Tensor:
            given = [convert(value) for convert, value in zip(into, values, strict=True)]
            return converted(function(*given, **attributes), result)

        return compute

    def _full(self, output: str) -> Function:
        """Return a function that fills a tensor with a number."""
        dtype, fit, device = DTYPES[output], fitting(output), self.device
        return lambda value, size: torch.full(size, fit(value), dtype=dtype, device=device)

    def _into(self, name: str | None) -> Function:
        """Return a function that converts a tensor or a number to a dtype."""
        if name is None:
            return lambda value: value
        dtype, fit, device = DTYPES[name], fitting(name), self.device

        def convert(value: Any) -> torch.Tensor:
            if isinstance(value, torch.Tensor):
                return converted(value, dtype)
            return torch.scalar_tensor(fit(value), dtype=dtype, device=device)

        return convert

    def compile(self, plan: Plan) -> Callable[[list[Any]], list[Any]] | None:
        """Compile a plan as a whole by Inductor."""
        if all(output < len(plan.inputs) for output in plan.outputs):
            return None
        # Importing Inductor takes seconds.
        from gt.engines.pytorch.compiled import CompiledPlan

        return CompiledPlan(self, plan)

    def is_device_lost(self, error: BaseException) -> bool:
        """Return whether the GPU fails all calls of this process after this error."""
        return self.hardware.is_lost(error)

    def cause(self, error: Exception, step: Step, operands: list[Any]) -> Exception:
        """Return GT's error for a step that failed, instead of PyTorch's."""
        if self.hardware.is_out_of_memory(error):
            self.hardware.release_memory()
            return out_of_memory(step.output)
        if step.operation in _LOOKING:
            # The exact form raises GT's error for invalid values.
            kinds = tuple(
                Kind(NAMES[operand.dtype], operand.ndim > 0)
                if isinstance(operand, torch.Tensor)
                else type(operand)
                for operand in operands
            )
            exact = self.exact(Signature(step.operation, kinds, step.output.dtype))
            try:
                bound(_looking(exact), step)(*operands)
            except Exception as found:
                error = found
        return super().cause(error, step, operands)


def _looking(function: Function) -> Function:
    """Wrap a function so that it checks its requirements on values, and raises."""

    def compute(*values: Any, **attributes: Any) -> torch.Tensor:
        take_required()  # discard those of a call that failed
        result = function(*values, **attributes)
        for requirement in take_required():
            if not requirement.fine:
                raise requirement.error()
        return result

    return compute


def _viewed(data: memoryview, dtype: torch.dtype) -> torch.Tensor:
    """View bytes as a flat tensor; the caller must not write to it if they are read-only."""
    if not data.readonly:
        return torch.frombuffer(data, dtype=dtype)
    with warnings.catch_warnings():
        # PyTorch warns about read-only memory.
        warnings.simplefilter("ignore")
        return torch.frombuffer(data, dtype=dtype)


def _has_collectives(backend: str) -> bool:
    distributed = torch.distributed
    return distributed.is_available() and getattr(distributed, f"is_{backend}_available")()


def _convert_tensor(convert: Function, value: Any) -> Any:
    return convert(value) if isinstance(value, torch.Tensor) else value
