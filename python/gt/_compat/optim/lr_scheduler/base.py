"""The base class of learning rate schedules."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from gt._arguments import brief
from gt._gt import Tensor
from gt._lines import warn

from ..optimizer import Group, Optimizer


class LRScheduler:
    """The base of learning rate schedules, which set the rates of an optimizer's groups.

    Subclasses define `get_lr`.

    Args:
        optimizer: the optimizer whose rates are set; each group's initial rate is kept in it as
            `initial_lr`.
        last_epoch: the number of steps already done, -1 for a new schedule.
    """

    #: Whether the initial step is in progress, in which recursive schedules keep the rates.
    _is_initial = False
    _get_lr_called_within_step = False
    #: Attributes that are not part of a state dict.
    _not_saved: tuple[str, ...] = ("optimizer",)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        self.optimizer = checked_optimizer(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming "
                    "scheduler with last_epoch >= 0\n  hint: load the optimizer's state first"
                )
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates of the first step."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer."""
        return {key: value for key, value in vars(self).items() if key not in self._not_saved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        vars(self).update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the rate of each group that the last step set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Compute the next rate of each group from the current ones."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Set the next rates; call this after the optimizer's step.

        Args:
            epoch: the number of the step to go to, instead of the next one; deprecated, as in
                PyTorch.
        """
        if self._step_count == 1 and not self.optimizer._has_stepped:
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. Call them in "
                "the opposite order, or the first rate of the schedule is skipped.",
                UserWarning,
            )
        self._step_count += 1
        if epoch is not None:
            warn_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                rates = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_rate(group, rate)
        self._last_lr = rates_of(self.optimizer)

    def _warn_unless_stepping(self) -> None:
        if not self._get_lr_called_within_step:
            warn(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`.",
                UserWarning,
            )

    def _scaled(self, factor: float) -> list[Any]:
        """Return the current rates times a factor."""
        return [group["lr"] * factor for group in self.optimizer.param_groups]


def warn_epoch() -> None:
    """Warn that the `epoch` argument of `step` is deprecated."""
    warn(
        "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated. "
        "Please use `scheduler.step()` to step the scheduler.",
        UserWarning,
    )


def checked_optimizer(optimizer: Any) -> Optimizer:
    """Return the optimizer, or raise a TypeError if it is not an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def check_period(name: str, value: Any) -> None:
    """Check that a number of epochs can divide others.

    Raises:
        TypeError: it is not a number.
        ValueError: it is 0.
    """
    if not isinstance(value, (Real, Tensor)):
        raise TypeError(f"{name} is {brief(value)}, expected a number of epochs")
    if isinstance(value, Real) and value == 0:
        raise ValueError(f"{name} is 0, expected 1 or more epochs")


def copied(rate: Any) -> Any:
    """Return a copy of a rate if it is a tensor, else the rate."""
    return rate.clone() if isinstance(rate, Tensor) else rate


def rates_of(optimizer: Optimizer) -> list[Any]:
    """Return copies of the current rates of all groups."""
    return [copied(group["lr"]) for group in optimizer.param_groups]


def set_rate(group: Group, rate: Any) -> None:
    """Set the rate of a group; a rate that is a tensor is filled in place."""
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(float(rate))
    else:
        group["lr"] = float(rate) if isinstance(rate, Tensor) else rate


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """Return a list of values, one per group, from a single value or such a list."""
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in optimizer.param_groups]
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {len(optimizer.param_groups)}."
        )
    return [copied(one) for one in value]


def cosine(start: Any, end: Any, share: float) -> Any:
    """Interpolate from start (share 0) to end (share 1) along half a cosine wave."""
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))
