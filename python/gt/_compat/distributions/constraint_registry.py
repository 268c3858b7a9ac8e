"""Transforms from unconstrained real numbers to a constraint's region.

`biject_to(constraint)` returns a bijective transform with `log_abs_det_jacobian`, as needed by
Hamiltonian Monte Carlo. `transform_to(constraint)` returns a transform that may be
overparameterized, for optimizing unconstrained parameters:

    >>> from gt.distributions import Normal, transform_to
    >>> unconstrained = gt.zeros(3, requires_grad=True)
    >>> transform_to(Normal.arg_constraints["scale"])(unconstrained)
    tensor([1., 1., 1.], dtype=float32, requires_grad=True)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from . import constraints, transforms
from .utils import Number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


Factory = TypeVar("Factory", bound=Callable[[Any], Any])


class ConstraintRegistry:
    """A table from constraint classes to functions that create a transform for a constraint."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], transforms.Transform]] = {}

    @overload
    def register(self, constraint: Any) -> Callable[[Factory], Factory]: ...
    @overload
    def register(self, constraint: Any, factory: Factory) -> Factory: ...
    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Register a factory for a class of constraints, or for the class of an instance.

        Without `factory`, return a decorator that registers the decorated function.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = constraint if isinstance(constraint, type) else type(constraint)
        if not issubclass(kind, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: constraints.Constraint) -> transforms.Transform:
        """Return the transform to a constraint's region.

        Raises a NotImplementedError if no factory is registered for the constraint's class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register_both(*kinds: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(factory: Callable[..., Any]) -> Callable[..., Any]:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_register_both(constraints.real)
def _to_real(constraint: Any) -> transforms.Transform:
    return transforms.identity_transform


@_register_both(constraints.positive, constraints.nonnegative)
def _to_greater_than(constraint: Any) -> transforms.Transform:
    bound = constraint.lower_bound
    if isinstance(bound, Number) and bound == 0:
        return transforms.ExpTransform()
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, 1)]
    )


@_register_both(constraints.less_than)
def _to_less_than(constraint: Any) -> transforms.Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_register_both(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


@_register_both(constraints.corr_cholesky)
def _to_corr_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.CorrCholeskyTransform()


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> transforms.Transform:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _to_lower_cholesky(constraint: Any) -> transforms.Transform:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _to_positive_definite(constraint: Any) -> transforms.Transform:
    return transforms.PositiveDefiniteTransform()


def _register_structured(registry: ConstraintRegistry) -> None:
    """Register the composed constraints; their parts are looked up in the same registry."""

    @registry.register(constraints.independent)
    def to_independent(constraint: Any) -> transforms.Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    @registry.register(constraints.cat)
    def to_cat(constraint: Any) -> transforms.Transform:
        parts = [registry(part) for part in constraint.cseq]
        return transforms.CatTransform(parts, constraint.dim, constraint.lengths)

    @registry.register(constraints.stack)
    def to_stack(constraint: Any) -> transforms.Transform:
        return transforms.StackTransform(
            [registry(part) for part in constraint.cseq], constraint.dim
        )


_register_structured(biject_to)
_register_structured(transform_to)
