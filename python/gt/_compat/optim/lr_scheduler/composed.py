"""Schedules composed of other schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler, rates_of, set_rate
from .plateau import ReduceLROnPlateau


class _Composed(LRScheduler):
    _not_saved = ("optimizer", "_schedulers")
    _schedulers: Sequence[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        """Store the schedulers, which must belong to one optimizer."""
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for index, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{name} at index {index} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support ReduceLROnPlateau, whose step needs a metric, but "
                    f"got one at index {index}"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but the one "
                    f"at index {index}, {type(scheduler).__name__}, does not"
                )
        self._schedulers, self.optimizer = schedulers, optimizer

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer, with the states of the schedulers."""
        states = [scheduler.state_dict() for scheduler in self._schedulers]
        return {**super().state_dict(), "_schedulers": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Composed):
    """A sequence of schedules, each of which restarts from its first step at its milestone.

    Args:
        optimizer: the optimizer of all schedules.
        schedulers: the schedules, in order.
        milestones: the step at which each schedule after the first begins.
        last_epoch: the number of steps already done, -1 for a new schedule.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ):
        self._take(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                f"SequentialLR: got {len(schedulers)} schedulers and {len(milestones)} "
                "milestones, expected one milestone fewer than schedulers"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        for group in optimizer.param_groups:
            set_rate(group, group["initial_lr"])
        # Undo the initial step that each scheduler's constructor made.
        _undo(self)
        first = self._schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Set the next rates."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


def _undo(scheduler: LRScheduler) -> None:
    """Decrement the step count of a scheduler, or of its parts if it is composed."""
    if isinstance(scheduler, _Composed):
        for part in scheduler._schedulers:
            _undo(part)
    else:
        scheduler.last_epoch -= 1


class ChainedScheduler(_Composed):
    """Several schedules stepped together; each starts from the rates that the previous one set."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        self._take(schedulers, optimizer)
        self._last_lr = rates_of(self.optimizer)

    def step(self) -> None:  # type: ignore[override]
        """Set the next rates."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = rates_of(self.optimizer)
