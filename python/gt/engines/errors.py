"""Errors of operations, with the messages of the native engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gt.engines.engine import Meta


def out_of_range(index: int, length: int) -> IndexError:
    """Return the error for an index that is out of range."""
    return IndexError(f"index {index} is out of range for an axis of length {length}")


def division_by_zero() -> ZeroDivisionError:
    """Return the error for integer division by zero."""
    return ZeroDivisionError("integer division by zero")


def negative_power() -> ArithmeticError:
    """Return the error for integers raised to negative powers."""
    return ArithmeticError("integers to negative integer powers are not allowed")


class OutOfMemory(MemoryError):
    """A tensor of `bytes` bytes does not fit; GT adds which sessions hold most memory."""

    def __init__(self, bytes: int):
        super().__init__(f"out of memory: {bytes} bytes asked for")
        self.bytes = bytes


def out_of_memory(asked: Meta) -> OutOfMemory:
    """Return the error for a tensor that does not fit in memory."""
    return OutOfMemory(asked.bytes)
