"""Schedules that are functions of the number of steps."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from gt._arguments import brief

from ..optimizer import Optimizer
from .base import LRScheduler, check_period, rates_of


class _OfFunctions(LRScheduler):
    """The base of schedules defined by a function for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ):
        count = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * count
        if len(lr_lambda) != count:
            raise ValueError(f"Expected {count} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer.

        Callable objects are represented by their attributes, functions by None.
        """
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(one, types.FunctionType) else dict(vars(one))
            for one in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        functions = state_dict["lr_lambdas"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for own, attributes in zip(self.lr_lambdas, functions, strict=True):
            if attributes is not None:
                vars(own).update(attributes)


class LambdaLR(_OfFunctions):
    """A schedule of the initial rate times a function of the number of steps."""

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        return [
            base * function(self.last_epoch)
            for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_OfFunctions):
    """A schedule that multiplies the current rate by a function of the number of steps."""

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        if self._is_initial:
            return rates_of(self.optimizer)
        return [
            group["lr"] * function(self.last_epoch)
            for function, group in zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        ]


class StepLR(LRScheduler):
    """A schedule that multiplies the rate by `gamma` every `step_size` steps."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ):
        check_period("step_size", step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return rates_of(self.optimizer)
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """A schedule that multiplies the rate by `gamma` at each of the steps in `milestones`."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ):
        if not isinstance(milestones, Iterable):
            raise TypeError(f"milestones is {brief(milestones)}, expected a list of epochs")
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        if self.last_epoch not in self.milestones:
            return rates_of(self.optimizer)
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """A schedule that multiplies the rate by `factor` for the first `total_iters` steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch != self.total_iters:
            return rates_of(self.optimizer)
        return self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor if self.last_epoch < self.total_iters else 1.0
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A schedule that multiplies the rate by a linearly changing factor.

    The factor goes from `start_factor` to `end_factor` in the first `total_iters` steps.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _factor(self, epoch: int) -> float:
        done = min(self.total_iters, epoch)
        return self.start_factor + (self.end_factor - self.start_factor) * done / self.total_iters

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates_of(self.optimizer)
        return self._scaled(self._factor(self.last_epoch) / self._factor(self.last_epoch - 1))

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self._factor(self.last_epoch) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """A schedule that multiplies the rate by `gamma` after each step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        return rates_of(self.optimizer) if self._is_initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """A schedule of the initial rate times (1 - step / total_iters)^power."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates_of(self.optimizer)
        left, before = (
            1.0 - done / self.total_iters for done in (self.last_epoch, self.last_epoch - 1)
        )
        return self._scaled((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """A schedule along a cosine wave between the initial rate and `eta_min`.

    It is that of Loshchilov and Hutter, ICLR 2017, without restarts.
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ):
        check_period("T_max", T_max)
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _wave(self, epoch: float) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def get_lr(self) -> list[Any]:
        """Compute the next rates."""
        self._warn_unless_stepping()
        if self._is_initial:
            return rates_of(self.optimizer)
        if self._step_count == 1 and self.last_epoch > 0:
            return self._get_closed_form_lr()
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                group["lr"] + (base - self.eta_min) * rise
                for base, group in zip(self.base_lrs, self.optimizer.param_groups, strict=True)
            ]
        ratio = self._wave(self.last_epoch) / self._wave(self.last_epoch - 1)
        return [
            ratio * (group["lr"] - self.eta_min) + self.eta_min
            for group in self.optimizer.param_groups
        ]

    def _get_closed_form_lr(self) -> list[Any]:
        share = self._wave(self.last_epoch) / 2
        return [self.eta_min + (base - self.eta_min) * share for base in self.base_lrs]
