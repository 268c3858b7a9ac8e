"""Type promotion, and questions about dtypes."""

from __future__ import annotations

import gt
from gt import _gt
from gt._gt import Tensor, dtype, parse_dtype
from gt.engines.engine import Kind
from gt.engines.promotion import promote
from gt.ops.annotations import DType, Number
from gt.ops.precision import common_dtype
from gt.ops.registry import function, operation

_UNSIGNED = ("bool", "uint8", "uint16", "uint32", "uint64")


def _is_signed(of: dtype) -> bool:
    """Return whether a dtype represents negative numbers."""
    return of.name not in _UNSIGNED


setattr(dtype, "is_signed", property(_is_signed, doc="Whether it represents negative numbers."))  # noqa: B010


@function
def result_type(tensor1: Tensor | Number, tensor2: Tensor | Number) -> dtype:
    """Return the dtype of arithmetic with two operands, tensors or numbers.

    The dtypes of tensors with axes decide; those of tensors without axes, and then of numbers,
    count only where their kind is higher, in the order bool, integer, float.

    >>> gt.result_type(gt.ones(2, dtype=gt.int32), 1.0)
    gt.float32
    """
    return common_dtype(tensor1, tensor2)


@function
def promote_types(type1: DType, type2: DType) -> dtype:
    """Return the smallest dtype that two dtypes can be cast to without loss of range.

    >>> gt.promote_types(gt.int64, gt.float16)
    gt.float16
    """
    both = (Kind(parse_dtype(of).name) for of in (type1, type2))
    return parse_dtype(promote(tuple(both)))


@function
def can_cast(from_: DType, to: DType) -> bool:
    """Return whether a cast loses no kind: it may not go from float to integer or number to bool.

    >>> gt.can_cast(gt.float64, gt.float32), gt.can_cast(gt.float32, gt.int64)
    (True, False)
    """
    return _rank(parse_dtype(from_)) <= _rank(parse_dtype(to))


def _rank(of: dtype) -> int:
    """Return the rank of a dtype's kind: bool, integers, floats, complex numbers."""
    if of.is_complex:
        return 3
    return 2 if of.is_floating_point else int(of != gt.bool)


@operation
def is_floating_point(input: Tensor) -> bool:
    """Return whether the values are floats.

    >>> gt.is_floating_point(gt.ones(2))
    True
    """
    return input.dtype.is_floating_point


@operation
def is_complex(input: Tensor) -> bool:
    """Return whether the values are complex numbers.

    >>> gt.is_complex(gt.ones(2))
    False
    """
    return input.dtype.is_complex


@operation
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype represents negative numbers.

    >>> gt.is_signed(gt.ones(2, dtype=gt.uint8))
    False
    """
    return input.dtype.is_signed


@function
def get_default_dtype() -> dtype:
    """Return the dtype of new float tensors: float32, unless another was set.

    >>> gt.get_default_dtype()
    gt.float32
    """
    return _gt.default_dtype()


@function
def set_default_dtype(d: DType) -> None:
    """Set the dtype of new float tensors, for the whole process.

    It applies where no dtype is given: to lists of numbers, to creation functions, and to results
    of integers in floats, such as `i / j`. Complex numbers have parts of this dtype.

    >>> gt.set_default_dtype(gt.float64)
    >>> (gt.arange(3) / 2).dtype, gt.zeros(2).dtype, gt.tensor([1j]).dtype
    (gt.float64, gt.float64, gt.complex128)
    >>> gt.set_default_dtype(gt.float32)

    Args:
        d: a float dtype.

    Raises:
        TypeError: the dtype is not a float dtype.
    """
    _gt.set_default_dtype(d)
