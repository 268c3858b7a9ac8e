"""Constraints composed of other constraints."""

from __future__ import annotations

from collections.abc import Sequence

import gt
from gt._gt import Tensor

from ._alias import alias
from ._constraint import Constraint


class IndependentConstraint(Constraint):
    """A constraint whose events have more axes: an event is valid if all its base events are.

    `reinterpreted_batch_ndims` is the number of batch axes that become event axes.
    """

    is_discrete: bool = alias(
        "base_constraint.is_discrete", "Whether the base constraint is discrete."
    )

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        _need_constraints([base_constraint])
        if not isinstance(reinterpreted_batch_ndims, int) or reinterpreted_batch_ndims < 0:
            raise AssertionError(
                "reinterpreted_batch_ndims must be an int of 0 or more, "
                f"got {reinterpreted_batch_ndims}"
            )
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The number of event axes: those of the base constraint and the added ones."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        """Return whether all base events of each event are valid."""
        result = self.base_constraint.check(value)
        kept = result.dim() - self.reinterpreted_batch_ndims
        if kept < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: each event must be in the support of every component."""

    is_discrete: bool = alias("base_constraint.is_discrete", "Whether the components are discrete.")
    event_dim: int = alias(
        "base_constraint.event_dim", "The number of axes of a component's events."
    )

    def __init__(self, base_constraint: Constraint):
        _need_constraints([base_constraint])
        self.base_constraint = base_constraint

    def check(self, value: Tensor) -> Tensor:
        """Return whether each event is in the support of every component."""
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        kept = value.dim() - self.event_dim
        return result.reshape((*result.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class Cat(Constraint):
    """Parts of a tensor along an axis, concatenated as by `gt.cat`, each with its own constraint.

    `lengths` are the lengths of the parts along the axis, 1 each by default.
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ):
        _need_constraints(cseq)
        self.cseq = list(cseq)
        self.lengths = list(lengths or [1] * len(self.cseq))
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )
        self.dim = dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether any part is discrete."""
        return any(part.is_discrete for part in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The largest number of event axes of any part."""
        return max(part.event_dim for part in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        """Check each part with its constraint and concatenate the results."""
        _need_axis(value, self.dim)
        parts = value.split(self.lengths, self.dim)
        checked = [own.check(part) for own, part in zip(self.cseq, parts, strict=True)]
        return gt.cat(checked, self.dim)


class Stack(Constraint):
    """Slices of a tensor along an axis, stacked as by `gt.stack`, each with its own constraint."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        _need_constraints(cseq)
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether any slice is discrete."""
        return any(part.is_discrete for part in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The largest number of event axes of any slice, plus 1 if `dim` is among them."""
        dim = max(part.event_dim for part in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        """Check each slice with its constraint and stack the results."""
        _need_axis(value, self.dim)
        slices = value.unbind(self.dim)
        checked = [own.check(part) for own, part in zip(self.cseq, slices, strict=True)]
        return gt.stack(checked, self.dim)


def _need_axis(value: Tensor, dim: int) -> None:
    if not -value.dim() <= dim < value.dim():
        raise AssertionError(f"dim {dim} out of range for value with {value.dim()} dimensions")


def _need_constraints(given: Sequence[object]) -> None:
    for constraint in given:
        if not isinstance(constraint, Constraint):
            kind = type(constraint).__name__
            raise AssertionError(f"expected Constraint instances, got {kind}")
