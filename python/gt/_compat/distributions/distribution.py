"""The base of all distributions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gt
from gt._arguments import brief
from gt._gt import Tensor
from gt._lines import warn

from . import constraints
from ._constraint import plain
from .utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """The base of all distributions: a batch of independent distributions over events of one shape.

    `validate_args` sets whether parameters and values are checked. A check fetches one boolean, so
    the program waits for all operations it has issued until then, as PyTorch does on a GPU. The
    check of the constructor and those of `log_prob` and `cdf` are turned off by
    `validate_args=False` for one distribution, and by
    `Distribution.set_default_validate_args(False)` for all.

    A sample has the shape `sample_shape + batch_shape + event_shape`.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    #: Tensor attributes with the batch shape that are not in `arg_constraints`.
    _batched: tuple[str, ...] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check parameters and values by default."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: got {value!r}, expected True or False")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Sequence[int] = (),
        event_shape: Sequence[int] = (),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = gt.Size(batch_shape)
        self._event_shape = gt.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()

    def _validate_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
            )
            return
        checks = []
        for name, constraint in arg_constraints.items():
            lazy = isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or (lazy and name not in self.__dict__):
                continue
            value = getattr(self, name)
            checks.append((name, constraint, value, constraint.check(value).all()))
        if not checks or bool(gt.stack([valid for *_, valid in checks]).all()):
            return
        name, constraint, value = next(check[:3] for check in checks if not bool(check[3]))
        raise ValueError(
            f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) "
            f"of distribution {self!r} to satisfy the constraint {constraint!r}, "
            f"but found invalid values:\n{value}"
        )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """Return the distribution with its parameters expanded to a larger batch shape.

        Parameters are neither copied nor checked again. A subclass with batched parameters that
        are not in `arg_constraints` must extend this method.
        """
        new: Any = self._get_checked_instance(type(self), _instance)
        batch_shape = gt.Size(batch_shape)
        new.__dict__.setdefault("_batch_shape", batch_shape)
        parameters = {*self._arg_names(), *self._batched}
        for name, value in self.__dict__.items():
            if name in new.__dict__:
                continue
            if isinstance(value, Distribution):
                new.__dict__[name] = self._expand_part(value, batch_shape)
            elif name in parameters and isinstance(value, Tensor):
                own = value.shape[len(self._batch_shape) :]
                new.__dict__[name] = value.expand((*batch_shape, *own))
            elif not isinstance(getattr(type(self), name, None), lazy_property):
                new.__dict__[name] = value
        return new

    def _expand_part(self, part: Distribution, batch_shape: Sequence[int]) -> Distribution:
        """Expand a distribution that is an attribute of this one."""
        return part.expand((*batch_shape, *part.batch_shape[len(self._batch_shape) :]))

    def _arg_names(self) -> list[str]:
        try:
            return list(self.arg_constraints)
        except NotImplementedError:
            return []

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """Return the instance that `expand` fills: `_instance`, or a new one without `__init__`."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return object.__new__(type(self))

    @property
    def batch_shape(self) -> Any:
        """The shape of the batch of parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of one event."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraint of each parameter, by name."""
        raise self._without("arg_constraints")

    @property
    def support(self) -> Any:
        """The constraint that all values of the distribution satisfy."""
        raise self._without("support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise self._without("mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise self._without("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values without gradients."""
        with gt.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw values as differentiable functions of the parameters (reparameterization)."""
        raise self._without("rsample")

    def sample_n(self, n: int) -> Tensor:
        """Draw n values (deprecated: use `sample((n,))`)."""
        warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability or density at `value`."""
        raise self._without("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative distribution function: the probability of at most `value`."""
        raise self._without("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile of a probability: the inverse of `cdf`."""
        raise self._without("icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution along axis 0.

        The shape is (number of values,) + batch_shape + event_shape; without `expand` the batch
        axes have length 1.
        """
        raise self._without("enumerate_support")

    def entropy(self) -> Tensor:
        """Return the entropy in nats, of shape batch_shape."""
        raise self._without("entropy")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def _without(self, name: str) -> NotImplementedError:
        """Return the error that the distribution does not define something."""
        hint = "\n  hint: sample() draws values without gradients" if name == "rsample" else ""
        return NotImplementedError(f"{type(self).__name__} has no {name}{hint}")

    def _extended_shape(self, sample_shape: Sequence[int] = ()) -> Any:
        if not isinstance(sample_shape, Iterable) or isinstance(sample_shape, str):
            raise TypeError(
                f"sample_shape is {brief(sample_shape)}, expected a tuple of lengths\n"
                "  hint: (3,) for three samples"
            )
        return gt.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _check_sample(self, value: Any) -> None:
        """Validate a value, unless validation is turned off."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Raise a ValueError unless `value` has a valid shape and lies in the support."""
        if not isinstance(value, Tensor):
            raise ValueError(
                f"The value argument to log_prob must be a Tensor, not {type(value).__name__}"
            )
        shape, expected = tuple(value.shape), (*self._batch_shape, *self._event_shape)
        if shape[len(shape) - len(self._event_shape) :] != tuple(self._event_shape):
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{shape} vs {tuple(self._event_shape)}."
            )
        for i, j in zip(reversed(shape), reversed(expected), strict=False):
            if i != j and 1 not in (i, j):
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {shape}) to be within "
                f"the support ({support!r}) of the distribution {self!r}, "
                f"but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = {k: self.__dict__[k] for k in self.arg_constraints if k in self.__dict__}
        one = {k: plain(v) if v.numel() == 1 else tuple(v.shape) for k, v in given.items()}
        parts = [f"{name}: {value}" for name, value in one.items()]
        return f"{type(self).__name__}({', '.join(parts)})"
