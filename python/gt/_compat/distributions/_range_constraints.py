"""Constraints on numbers and on vectors."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor

from ._constraint import Constraint, plain


class _Bounded(Constraint):
    """A range with a lower bound, an upper bound or both: numbers, or tensors that broadcast."""

    def __repr__(self) -> str:
        bounds = ", ".join(f"{name}={plain(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({bounds})"


class _BoundedBelow(_Bounded):
    def __init__(self, lower_bound: Any):
        self.lower_bound = lower_bound


class _BoundedAbove(_Bounded):
    def __init__(self, upper_bound: Any):
        self.upper_bound = upper_bound


class _BoundedOnBothSides(_Bounded):
    def __init__(self, lower_bound: Any, upper_bound: Any):
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class Boolean(Constraint):
    """The numbers 0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is 0 or 1."""
        return (value == 0) | (value == 1)


class OneHot(Constraint):
    """One-hot vectors: a single 1, and 0 elsewhere."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Return whether each vector has a single 1, and 0 elsewhere."""
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class IntegerInterval(_BoundedOnBothSides):
    """The integers from a lower to an upper bound, both included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is an integer within the bounds."""
        return (value % 1 == 0) & (value >= self.lower_bound) & (value <= self.upper_bound)


class IntegerGreaterThan(_BoundedBelow):
    """The integers of at least a lower bound."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is an integer of at least the bound."""
        return (value % 1 == 0) & (value >= self.lower_bound)


class Real(Constraint):
    """All real numbers, including infinities, but not NaN."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is not NaN."""
        return value == value


class GreaterThan(_BoundedBelow):
    """The numbers above a lower bound, infinity included."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is above the bound."""
        return value > self.lower_bound


class GreaterThanEq(_BoundedBelow):
    """The numbers of at least a lower bound."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is at least the bound."""
        return value >= self.lower_bound


class LessThan(_BoundedAbove):
    """The numbers below an upper bound."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is below the bound."""
        return value < self.upper_bound


class Interval(_BoundedOnBothSides):
    """The numbers from a lower to an upper bound, both included."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is within the bounds."""
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class HalfOpenInterval(_BoundedOnBothSides):
    """The numbers from a lower bound (included) to an upper bound (excluded)."""

    def check(self, value: Tensor) -> Tensor:
        """Return whether each element is at least the lower bound and below the upper one."""
        return (value >= self.lower_bound) & (value < self.upper_bound)


class Simplex(Constraint):
    """Vectors of nonnegative numbers with the sum 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Return whether each vector has no negative element and a sum within 1e-6 of 1."""
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class Multinomial(_BoundedAbove):
    """Vectors of counts with a sum of at most an upper bound."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        """Return whether each vector has no negative element and a sum of at most the bound."""
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)
