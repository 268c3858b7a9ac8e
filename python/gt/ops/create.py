"""Tensors made of numbers: filled with one, in steps, or as another tensor is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import gt
from gt import _gt
from gt._formats import check_layout
from gt._gt import Tensor, parse_dtype, primitives
from gt._session import Session
from gt.ops.annotations import Device, DType, Number, Size
from gt.ops.registry import function

#: What all functions that make tensors take, besides what they say themselves.
_OPTIONS = inspect.signature(
    lambda *, layout=None, device=None, requires_grad=False, pin_memory=False: None
).parameters


def creation(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Let a function that makes a tensor take what PyTorch's take.

    `layout`, `device` and `pin_memory` change nothing; with `requires_grad`, gradients are wanted.
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
            gt.device(device)
        if lengths_one_by_one and "size" in kwargs:
            args = (*args, kwargs.pop("size"))
        made = make(*args, **kwargs)
        return made.requires_grad_() if requires_grad else made

    options = [of for name, of in _OPTIONS.items() if name not in own.parameters]
    created.__signature__ = own.replace(parameters=[*own.parameters.values(), *options])
    return created


def beside(tensor: Tensor) -> AbstractContextManager:
    """Make tensors in the session of another one inside a block."""
    return Session.of(tensor).use()


def lengths(size: tuple[Any, ...]) -> tuple[int, ...]:
    """Give the lengths that are given one by one or in a tuple."""
    if len(size) == 1 and not hasattr(size[0], "__index__"):
        return tuple(size[0])
    return size


@function
@creation
def zeros(*size: Size, dtype: DType | None = None) -> Tensor:
    """Make a tensor of zeros.

    >>> gt.zeros(2)
    tensor([0., 0.], dtype=gt.float32)
    """
    return _gt.zeros(*size, dtype=dtype)


@function
@creation
def ones(*size: Size, dtype: DType | None = None) -> Tensor:
    """Make a tensor of ones.

    >>> gt.ones(2)
    tensor([1., 1.], dtype=gt.float32)
    """
    return _gt.ones(*size, dtype=dtype)


@function
@creation
def empty(*size: Size, dtype: DType | None = None, memory_format: Any = None) -> Tensor:
    """Make a tensor whose values do not matter; they are zeros.

    >>> gt.empty(2, 3).shape
    (2, 3)
    """
    return _gt.empty(*size, dtype=dtype)


@function
@creation
def full(size: Size, fill_value: Tensor | Number, *, dtype: DType | None = None) -> Tensor:
    """Make a tensor filled with one number, whose dtype it has unless another is given.

    >>> gt.full((2,), 7.0)
    tensor([7., 7.], dtype=gt.float32)
    """
    if isinstance(fill_value, Tensor):
        filled = fill_value.detach().broadcast_to(size).clone()
        return filled if dtype is None else filled._cast(dtype)
    return _gt.full(size, fill_value, dtype=dtype)


@function
@creation
def empty_strided(size: Size, stride: Size, *, dtype: DType | None = None) -> Tensor:
    """Make a tensor whose values do not matter; GT has no strides, so these change nothing.

    >>> gt.empty_strided((2, 3), (1, 2)).shape
    (2, 3)
    """
    if len(size) != len(stride):
        raise ValueError(f"empty_strided: size has {len(size)} lengths, stride has {len(stride)}")
    return _gt.empty(size, dtype=dtype)


@function
@creation
def empty_permuted(
    size: Size, physical_layout: tuple[int, ...], *, dtype: DType | None = None
) -> Tensor:
    """Make a tensor whose values do not matter; the order of its axes in memory changes nothing.

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
    """Make a tensor without axes of a number, in float32 unless a dtype is given.

    >>> gt.scalar_tensor(3)
    tensor(3., dtype=gt.float32)
    """
    return _gt.full((), s, dtype=gt.float32 if dtype is None else dtype)


@function
@creation
def eye(n: int, m: int | None = None, *, dtype: DType | None = None) -> Tensor:
    """Make a matrix of n rows and m columns, n if none are given: ones on the diagonal, else zeros.

    >>> gt.eye(2)
    tensor([[1., 0.],
            [0., 1.]], dtype=gt.float32)
    """
    return _gt.eye(n, m, dtype=dtype)


@function
@creation
def arange(
    start: Number, end: Number | None = None, step: Number = 1, *, dtype: DType | None = None
) -> Tensor:
    """Make numbers from start up to but without end, in steps: start, start + step, ...

    `arange(end)` starts at 0. Integers give int64, floats float32, unless a dtype is given.

    >>> gt.arange(3)
    tensor([0, 1, 2], dtype=gt.int64)
    """
    return _gt.arange(_number(start), _number(end), _number(step), dtype=dtype)


def _number(given: Any) -> Any:
    """Give the number in a tensor; lengths must be known."""
    return given.item() if isinstance(given, Tensor) else given


@function
@creation
def linspace(
    start: Tensor | Number, end: Tensor | Number, steps: int, *, dtype: DType | None = None
) -> Tensor:
    """Make that many numbers evenly from start to end, both included.

    >>> gt.linspace(0, 1, 3)
    tensor([0.0000, 0.5000, 1.0000], dtype=gt.float32)
    """
    wanted = gt.float32 if dtype is None else parse_dtype(dtype)
    if not isinstance(start, Tensor) and not isinstance(end, Tensor):
        return _gt.linspace(start, end, steps, dtype=wanted)
    with beside(start if isinstance(start, Tensor) else end):
        place = _gt.linspace(0, 1, steps, dtype=gt.float64)
    start, end = _double(start), _double(end)
    step = end - start
    return primitives.where(place < 0.5, start + step * place, end - step * (1 - place))._cast(
        wanted
    )


def _double(given: Tensor | Number) -> Tensor | Number:
    """Give a limit in float64; no gradients flow to it."""
    return given.detach()._cast(gt.float64) if isinstance(given, Tensor) else given


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
    """Make that many numbers from base^start to base^end, whose logarithms are even.

    >>> gt.logspace(0, 2, 3)
    tensor([  1.,  10., 100.], dtype=gt.float32)
    """
    wanted = gt.float32 if dtype is None else parse_dtype(dtype)
    exponents = linspace(start, end, steps, dtype=gt.float64)
    return primitives.pow(float(base), exponents)._cast(wanted)
