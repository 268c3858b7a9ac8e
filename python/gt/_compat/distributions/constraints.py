"""Constraints: the regions that parameters and values of distributions lie in.

`constraint.check(value)` returns for each event whether it lies in the region.

    >>> gt.distributions.constraints.positive.check(gt.tensor([-1.0, 2.0]))
    tensor([False,  True], dtype=bool)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

from gt._gt import Tensor

from ._constraint import Constraint
from ._matrix_constraints import (
    CorrCholesky,
    LowerCholesky,
    LowerTriangular,
    PositiveDefinite,
    PositiveSemidefinite,
    Square,
    Symmetric,
)
from ._range_constraints import (
    Boolean,
    GreaterThan,
    GreaterThanEq,
    HalfOpenInterval,
    IntegerGreaterThan,
    IntegerInterval,
    Interval,
    LessThan,
    Multinomial,
    OneHot,
    Real,
    Simplex,
)
from ._structured_constraints import (
    Cat,
    IndependentConstraint,
    MixtureSameFamilyConstraint,
    Stack,
)

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Dependent(Constraint):
    """A placeholder for a constraint that depends on other variables and cannot be checked.

    Calling an instance returns a copy with `is_discrete` and `event_dim` replaced where given.
    """

    def __init__(self, *, is_discrete: bool | None = None, event_dim: int | None = None):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the region is discrete; raises a NotImplementedError if that is not known."""
        if self._is_discrete is None:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The number of axes of an event; raises a NotImplementedError if it is not known."""
        if self._event_dim is None:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> Any:
        return Dependent(
            is_discrete=self._is_discrete if is_discrete is None else is_discrete,
            event_dim=self._event_dim if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        """Raise a ValueError: the variables that the constraint depends on are not known."""
        raise ValueError("Cannot determine validity of dependent constraint")


class DependentProperty(property, Dependent):
    """A property that is a constraint on an instance, and a `Dependent` constraint on the class.

    >>> class Below:
    ...     limit = 2.0
    ...
    ...     @gt.distributions.constraints.dependent_property(is_discrete=False, event_dim=0)
    ...     def support(self):
    ...         return gt.distributions.constraints.less_than(self.limit)
    >>> Below().support
    LessThan(upper_bound=2.0)
    """

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool | None = None,
        event_dim: int | None = None,
    ):
        property.__init__(self, fn)
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Any]) -> Any:  # type: ignore[override]
        return DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Return whether a constraint depends on other variables.

    >>> constraints = gt.distributions.constraints
    >>> constraints.is_dependent(constraints.dependent)
    True
    """
    return isinstance(constraint, Dependent)


dependent = Dependent()
if TYPE_CHECKING:

    @overload
    def dependent_property(fn: Callable[[Any], Any], /) -> property: ...
    @overload
    def dependent_property(
        *, is_discrete: bool | None = None, event_dim: int | None = None
    ) -> Callable[[Callable[[Any], Any]], property]: ...
    def dependent_property(*args: Any, **kwargs: Any) -> Any:
        """Return a `DependentProperty`, or a decorator that makes one."""

else:
    dependent_property = DependentProperty
independent = IndependentConstraint
boolean = Boolean()
one_hot = OneHot()
nonnegative_integer = IntegerGreaterThan(0)
positive_integer = IntegerGreaterThan(1)
integer_interval = IntegerInterval
real = Real()
real_vector = independent(real, 1)
positive = GreaterThan(0.0)
nonnegative = GreaterThanEq(0.0)
greater_than = GreaterThan
greater_than_eq = GreaterThanEq
less_than = LessThan
multinomial = Multinomial
unit_interval = Interval(0.0, 1.0)
interval = Interval
half_open_interval = HalfOpenInterval
simplex = Simplex()
lower_triangular = LowerTriangular()
lower_cholesky = LowerCholesky()
corr_cholesky = CorrCholesky()
square = Square()
symmetric = Symmetric()
positive_semidefinite = PositiveSemidefinite()
positive_definite = PositiveDefinite()
cat = Cat
stack = Stack
