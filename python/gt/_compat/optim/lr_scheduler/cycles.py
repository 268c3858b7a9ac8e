"""Cyclic schedules, some of which also cycle the momentum in the opposite direction."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from ..optimizer import Group, Optimizer
from .base import (
    LRScheduler,
    checked_optimizer,
    cosine,
    for_each_group,
    rates_of,
    set_rate,
)


class _WithMomentum(LRScheduler):
    """The base of schedules that may also set the momentum, or the first beta, of each group."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, base: Any, most: Any, last_epoch: int) -> None:
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        self.base_momentums = for_each_group("base_momentum", optimizer, base)
        self.max_momentums = for_each_group("max_momentum", optimizer, most)
        if last_epoch != -1:
            return
        momentums = zip(self.base_momentums, self.max_momentums, strict=True)
        for group, (least, greatest) in zip(optimizer.param_groups, momentums, strict=True):
            self._set_momentum(group, greatest)
            group.update(max_momentum=greatest, base_momentum=least)

    def _set_momentum(self, group: Group, momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """A schedule that cycles the rate between two bounds (Smith, WACV 2017).

    Args:
        optimizer: the optimizer whose rates are set.
        base_lr: the lower bound, or one for each group.
        max_lr: the upper bound, or one for each group.
        step_size_up: the number of steps in the increasing half of a cycle.
        step_size_down: the number of steps in the decreasing half, by default `step_size_up`.
        mode: "triangular", "triangular2" (the amplitude is halved after each cycle) or
            "exp_range" (the amplitude is `gamma` to the power of the step).
        gamma: the base of "exp_range".
        scale_fn: a function that returns the amplitude, used instead of `mode`.
        scale_mode: whether `scale_fn` takes the number of the "cycle", or of the step
            ("iterations").
        cycle_momentum: whether the momentum decreases while the rate increases.
        base_momentum: the lower bound of the momentum.
        max_momentum: the upper bound of the momentum.
        last_epoch: the number of steps already done, -1 for a new schedule.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ):
        self.optimizer = checked_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_rate(group, rate)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """Return the amplitude at a cycle or step, depending on `scale_mode`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        """Compute the next rates, and set the momenta."""
        self._warn_unless_stepping()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        at = 1.0 + self.last_epoch / self.total_size - cycle
        is_up = at <= self.step_ratio
        height = at / self.step_ratio if is_up else (at - 1) / (self.step_ratio - 1)
        height *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (base, most) in zip(self.optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, most - (most - base) * height)
        rates = zip(self.base_lrs, self.max_lrs, strict=True)
        return [base + (most - base) * height for base, most in rates]

    def state_dict(self) -> dict[str, Any]:
        """Return all attributes except the optimizer.

        A callable object given as `scale_fn` is represented by its attributes, a function by None.
        """
        state, custom = super().state_dict(), self._scale_fn_custom
        is_object = custom is not None and not isinstance(custom, types.FunctionType)
        state["_scale_fn_custom"] = dict(vars(custom)) if is_object else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state that `state_dict` returned."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if attributes is not None:
            vars(self._scale_fn_custom).update(attributes)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing to `eta_min` with restarts (Loshchilov and Hutter, ICLR 2017).

    Args:
        optimizer: the optimizer whose rates are set.
        T_0: the number of steps until the first restart.
        T_mult: the factor by which this number grows after each restart.
        eta_min: the minimum rate.
        last_epoch: the number of steps already done, -1 for a new schedule.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """Compute the rates."""
        self._warn_unless_stepping()
        return [cosine(base, self.eta_min, self.T_cur / self.T_i) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Set the next rates.

        Args:
            epoch: the position in the schedule, which may be fractional; by default the next step.
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            set_rate(group, rate)
        self._get_lr_called_within_step = False
        self._last_lr = rates_of(self.optimizer)

    def _go_to(self, epoch: float) -> None:
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            waves = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            done = self.T_0 * (self.T_mult**waves - 1) / (self.T_mult - 1)
            self.T_i, self.T_cur = self.T_0 * self.T_mult**waves, epoch - done


class OneCycleLR(_WithMomentum):
    """The 1cycle schedule (Smith and Topin, 2019): up to `max_lr`, then far below the first rate.

    Args:
        optimizer: the optimizer whose rates are set.
        max_lr: the maximum rate, or one for each group.
        total_steps: the total number of steps.
        epochs: the number of epochs, given with `steps_per_epoch` instead of `total_steps`.
        steps_per_epoch: the number of steps per epoch.
        pct_start: the fraction of the steps in which the rate increases.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether the momentum decreases while the rate increases.
        base_momentum: the lower bound of the momentum.
        max_momentum: the upper bound of the momentum.
        div_factor: `max_lr` divided by the first rate.
        final_div_factor: the first rate divided by the last.
        three_phase: whether the rate first returns to the first rate, in as many steps as it
            increased, before it falls to the last.
        last_epoch: the number of steps already done, -1 for a new schedule.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        self.optimizer = checked_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if last_epoch == -1:
            for group, most in zip(
                optimizer.param_groups, for_each_group("max_lr", optimizer, max_lr), strict=True
            ):
                first = most / div_factor
                group.update(initial_lr=first, max_lr=most, min_lr=first / final_div_factor)
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "cos":
            return cosine(start, end, share)
        return start + (end - start) * share

    def get_lr(self) -> list[Any]:
        """Compute the next rates, and set the momenta."""
        self._warn_unless_stepping()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start, phases = 0.0, list(self._schedule_phases)
        while len(phases) > 1 and step > phases[0]["end_step"]:
            start = phases.pop(0)["end_step"]
        phase = phases[0]
        share = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentums = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._between(*momentums, share))
        return rates


def _total_steps(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    given = {"total_steps": total} if total is not None else {}
    if not given and epochs is not None and per_epoch is not None:
        given = {"epochs": epochs, "steps_per_epoch": per_epoch}
    if not given:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(total: int, share: float, three: bool) -> list[dict[str, Any]]:
    """Return for each phase its last step, and the group entries that it interpolates between."""

    def phase(end: float, start_lr: str, end_lr: str, start: str, after: str) -> dict[str, Any]:
        return {
            "end_step": end,
            "start_lr": start_lr,
            "end_lr": end_lr,
            "start_momentum": f"{start}_momentum",
            "end_momentum": f"{after}_momentum",
        }

    up = phase(share * total - 1, "initial_lr", "max_lr", "max", "base")
    if not three:
        return [up, phase(total - 1, "max_lr", "min_lr", "base", "max")]
    down = phase(2 * share * total - 2, "max_lr", "initial_lr", "base", "max")
    return [up, down, phase(total - 1, "initial_lr", "min_lr", "max", "max")]
