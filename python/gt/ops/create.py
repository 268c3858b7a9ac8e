"""Creation of tensors from numbers: filled with one value, or in steps."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from operator import index
from typing import Any

import gt
from gt import _gt
from gt._device import check_target
from gt._formats import check_layout
from gt._gt import Tensor, parse_dtype, primitives
from gt.ops.annotations import Device, DType, Number, Size
from gt.ops.registry import function

#: The parameters that all creation functions have besides their own.
_OPTIONS = inspect.signature(
    lambda *, layout=None, device=None, requires_grad=False, pin_memory=False: None
).parameters


def creation(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Add the parameters of PyTorch's creation functions to a function that makes a tensor.

    `layout`, `device` and `pin_memory` have no effect; with `requires_grad`, integers become
    float32, unless their dtype was given.
    """
    own = inspect.signature(make)
    lengths_one_by_one = any(of.kind is of.VAR_POSITIONAL for of in own.parameters.values())

    @functools.wraps(make)
    def created(
        *args: Any,
        layout: Any = None,
        device: Device = None,
        requires_grad: bool = False,
        pin_memory: bool = False,
        **kwargs: Any,
    ) -> Tensor:
        check_layout(make.__name__, layout)
        if device is not None:
            check_target(device)
        if lengths_one_by_one and "size" in kwargs:
            args = (*args, kwargs.pop("size"))
        made = make(*args, **kwargs)
        if not requires_grad:
            return made
        # A dtype that was given is kept, which is an error for integers.
        return made.requires_grad_() if kwargs.get("dtype") else _with_gradients(made)

    options = [of for name, of in _OPTIONS.items() if name not in own.parameters]
    signature = own.replace(parameters=[*own.parameters.values(), *options])
    setattr(created, "__signature__", signature)  # noqa: B010
    return created


def _with_gradients(made: Tensor) -> Tensor:
    """Require gradients for a new tensor; integers become float32, as only floats have them."""
    return (made.float() if _is_whole(made.dtype) else made).requires_grad_()


class beside:
    """A block in which new tensors are made in the session of a given tensor."""

    def __init__(self, tensor: Tensor):
        self._session = _gt.session_of(tensor)

    def __enter__(self) -> None:
        self._session.enter(False)

    def __exit__(self, *error: object) -> None:
        self._session.leave()


def lengths(operation: str, size: tuple[Any, ...]) -> tuple[int, ...]:
    """Return lengths that are given one by one or as a tuple."""
    given = size[0] if len(size) == 1 and not hasattr(size[0], "__index__") else size
    try:
        return tuple(map(index, given))
    except TypeError:
        shown = f"{type(given).__name__} {given!r}"
        raise TypeError(
            f"{operation}: size must be ints, or a tuple of ints, not {shown}"
        ) from None


@function
@creation
def zeros(*size: Size, dtype: DType | None = None) -> Tensor:
    """Make a tensor of zeros.

    >>> gt.zeros(2)
    tensor([0., 0.], dtype=float32)
    """
    return _gt.zeros(lengths("zeros", size), dtype=dtype)


@function
@creation
def ones(*size: Size, dtype: DType | None = None) -> Tensor:
    """Make a tensor of ones.

    >>> gt.ones(2)
    tensor([1., 1.], dtype=float32)
    """
    return _gt.ones(lengths("ones", size), dtype=dtype)


@function
@creation
def empty(*size: Size, dtype: DType | None = None, memory_format: Any = None) -> Tensor:
    """Make a tensor whose values do not matter; they are zeros.

    >>> gt.empty(2, 3).shape
    (2, 3)
    """
    return _gt.empty(lengths("empty", size), dtype=dtype)


@function
@creation
def full(size: Size, fill_value: Tensor | Number, *, dtype: DType | None = None) -> Tensor:
    """Make a tensor filled with one number, in the number's dtype unless another is given.

    >>> gt.full((2,), 7.0)
    tensor([7., 7.], dtype=float32)
    """
    if isinstance(fill_value, Tensor):
        filled = fill_value.detach().broadcast_to(size).clone()
        return filled if dtype is None else filled._cast(dtype)
    return _gt.full(size, fill_value, dtype=dtype)


@function
@creation
def empty_strided(
    size: Sequence[int], stride: Sequence[int], *, dtype: DType | None = None
) -> Tensor:
    """Make a tensor whose values do not matter; GT has no strides, so `stride` has no effect.

    >>> gt.empty_strided((2, 3), (1, 2)).shape
    (2, 3)
    """
    if len(size) != len(stride):
        raise ValueError(f"empty_strided: size has {len(size)} lengths, stride has {len(stride)}")
    return _gt.empty(size, dtype=dtype)


@function
@creation
def empty_permuted(
    size: Sequence[int], physical_layout: Sequence[int], *, dtype: DType | None = None
) -> Tensor:
    """Make a tensor whose values do not matter; `physical_layout` has no effect.

    >>> gt.empty_permuted((2, 3), (1, 0)).shape
    (2, 3)
    """
    if sorted(physical_layout) != list(range(len(size))):
        raise ValueError(
            f"empty_permuted: physical_layout is {tuple(physical_layout)}, expected each axis "
            f"from 0 to {len(size) - 1} once"
        )
    return _gt.empty(size, dtype=dtype)


@function
@creation
def scalar_tensor(s: Number, *, dtype: DType | None = None) -> Tensor:
    """Make a tensor without axes from a number, in the default dtype unless another is given.

    >>> gt.scalar_tensor(3)
    tensor(3., dtype=float32)
    """
    return _gt.full((), s, dtype=_gt.default_dtype() if dtype is None else dtype)


@function
@creation
def eye(n: int, m: int | None = None, *, dtype: DType | None = None) -> Tensor:
    """Make a matrix of n rows and m columns (n by default): ones on the diagonal, else zeros.

    >>> gt.eye(2)
    tensor([[1., 0.],
            [0., 1.]], dtype=float32)
    """
    return _gt.eye(n, m, dtype=dtype)


@function
@creation
def arange(
    start: Number | None = None,
    end: Number | None = None,
    step: Number = 1,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Make the numbers start, start + step, ... up to but without end.

    `arange(end)` starts at 0. The dtype is int64 for integers and the default dtype for floats,
    unless one is given.

    >>> gt.arange(3)
    tensor([0, 1, 2], dtype=int64)
    """
    if end is None:
        start, end = None, start
    if end is None:
        raise TypeError("arange: end is missing\n  hint: gt.arange(end)")
    first, last, by = _number(0 if start is None else start), _number(end), _number(step)
    if dtype is None or not _is_whole(parse_dtype(dtype)):
        return _gt.arange(first, last, by, dtype=dtype)
    length = len(_gt.arange(first, last, by))
    return primitives.arange(int(first), int(by), length, parse_dtype(dtype))


def _is_whole(wanted: Any) -> bool:
    return not wanted.is_floating_point and not wanted.is_complex


def _number(given: Any) -> Any:
    """Return the number that a tensor holds, as lengths must be known at once."""
    return given.item() if isinstance(given, Tensor) else given


@function
@creation
def linspace(
    start: Tensor | Number, end: Tensor | Number, steps: int, *, dtype: DType | None = None
) -> Tensor:
    """Make `steps` numbers, evenly spaced from start to end, both included.

    >>> gt.linspace(0, 1, 3)
    tensor([0. , 0.5, 1. ], dtype=float32)
    """
    wanted = _gt.default_dtype() if dtype is None else parse_dtype(dtype)
    if isinstance(start, complex) or isinstance(end, complex):
        wanted = _complex_dtype("linspace", start, end, dtype)
        first, last = complex(start), complex(end)
        real = linspace(first.real, last.real, steps, dtype=gt.float64)
        imaginary = linspace(first.imag, last.imag, steps, dtype=gt.float64)
        return gt.complex(real, imaginary)._cast(wanted)
    if not isinstance(start, Tensor) and not isinstance(end, Tensor):
        if wanted.itemsize > 2 and wanted.is_floating_point:
            return _gt.linspace(start, end, steps, dtype=wanted)
    total, parts = _evenly(start, end, steps, wanted)
    return gt.div(total, parts, rounding_mode="trunc" if _is_whole(wanted) else None)._cast(wanted)


def _complex_dtype(name: str, start: Any, end: Any, dtype: DType | None) -> gt.dtype:
    """Return the complex dtype of numbers between complex limits."""
    wanted = gt.complex64 if gt.get_default_dtype() == gt.float32 else gt.complex128
    wanted = wanted if dtype is None else parse_dtype(dtype)
    if not wanted.is_complex:
        raise TypeError(f"{name}: {start} to {end} are complex, but dtype is {wanted.name}")
    return wanted


def _evenly(
    start: Tensor | float, end: Tensor | float, steps: int, wanted: Any
) -> tuple[Tensor, int]:
    """Return evenly spaced numbers as a numerator and a denominator.

    The limits are rounded to the dtype `wanted` first. The numerators are int64 for integers and
    float64 otherwise, so that integer results are exact.
    """
    parts = max(steps - 1, 1)
    tensor = next((of for of in (start, end) if isinstance(of, Tensor)), None)
    with nullcontext() if tensor is None else beside(tensor):
        place, start, end = _gt.arange(steps), _limit(start, wanted), _limit(end, wanted)
    return start * (parts - place) + end * place, parts


def _limit(given: Tensor | float, wanted: Any) -> Tensor:
    """Return a limit rounded to a dtype, detached: no gradients flow to it."""
    if not isinstance(given, Tensor):
        given = _gt.full((), int(given) if _is_whole(wanted) else given, dtype=wanted)
    return given.detach()._cast(wanted)._cast(gt.int64 if _is_whole(wanted) else gt.float64)


@function
@creation
def logspace(
    start: Tensor | Number,
    end: Tensor | Number,
    steps: int,
    base: float = 10.0,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """Make `steps` numbers from base^start to base^end, whose exponents are evenly spaced.

    >>> gt.logspace(0, 2, 3)
    tensor([  1.,  10., 100.], dtype=float32)
    """
    wanted = _gt.default_dtype() if dtype is None else parse_dtype(dtype)
    if isinstance(start, complex) or isinstance(end, complex):
        wanted = _complex_dtype("logspace", start, end, dtype)
        exponents = linspace(start, end, steps, dtype=gt.complex128)
        return gt.exp(exponents * math.log(base))._cast(wanted)
    # As in PyTorch, the exponent of a single number is not rounded.
    total, parts = _evenly(start, end, steps, gt.float64 if steps == 1 else wanted)
    return primitives.pow(float(base), total._cast(gt.float64) / parts)._cast(wanted)
