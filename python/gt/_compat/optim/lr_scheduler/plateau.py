"""A schedule that depends on a training metric."""

from __future__ import annotations

from math import inf
from typing import Any

from ..optimizer import Optimizer
from .base import (
    LRScheduler,
    checked_optimizer,
    rates_of,
    set_rate,
    warn_epoch,
)


class ReduceLROnPlateau(LRScheduler):
    """A schedule that multiplies the rate by `factor` when a metric has stopped improving.

    Args:
        optimizer: the optimizer whose rates are set.
        mode: "min" if lower metrics are better, "max" if higher ones are.
        factor: the factor, below 1.
        patience: the number of steps without improvement that are tolerated.
        threshold: the metric must change by more than this to count as improved.
        threshold_mode: "rel" for a threshold relative to the best metric, "abs" for an absolute
            one.
        cooldown: the number of steps after each reduction that are not counted.
        min_lr: the lower bound of the rate, or one for each group.
        eps: the rate is kept if the reduction would be at most this.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.optimizer = checked_optimizer(optimizer)
        count = len(optimizer.param_groups)
        self.default_min_lr: float | None = None
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != count:
                raise ValueError(f"expected {count} min_lrs, got {len(min_lr)}")
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * count
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.eps = cooldown, eps
        self.mode_worse = inf if mode == "min" else -inf
        self.last_epoch = 0
        self._last_lr = rates_of(optimizer)
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the schedule is in the cooldown after a reduction."""
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Set the rates for a new value of the metric; a metric that is a tensor is fetched."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warn_epoch()
        self.last_epoch = epoch
        if self.is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = rates_of(self.optimizer)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"the optimizer now has {len(groups)} groups, but min_lrs has "
                    f"{len(self.min_lrs)} rates\n  hint: set min_lrs to one rate per group"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            before = float(group["lr"])
            after = max(before * self.factor, least)
            if before - after > self.eps:
                set_rate(group, after)

    def is_better(self, a: float, best: float) -> bool:
        """Return whether a metric improves on the best so far by more than the threshold."""
        sign = 1.0 if self.mode == "max" else -1.0
        if self.threshold_mode == "rel":
            needed = best * (1.0 + sign * self.threshold)
        else:
            needed = best + sign * self.threshold
        return a > needed if self.mode == "max" else a < needed
