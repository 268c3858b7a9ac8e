"""Schedules that go up and down, some of them with the momentum in the opposite direction."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from gt.optim.lr_scheduler.base import (
    LRScheduler,
    checked_optimizer,
    cosine,
    for_each_group,
    rates_of,
    set_rate,
)
from gt.optim.optimizer import Group, Optimizer


class _WithMomentum(LRScheduler):
    """A schedule that may set the momentum, or the first beta, of each group."""

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
    """The rate up and down between two bounds (Smith, WACV 2017).

    Args:
        optimizer: whose rates it sets.
        base_lr: the lower bound, or one for each group.
        max_lr: the upper bound, or one for each group.
        step_size_up: steps on the way up.
        step_size_down: steps on the way down; as many unless given.
        mode: "triangular", "triangular2" (half as high in each cycle) or "exp_range" (`gamma` to
            the power of the steps).
        gamma: for "exp_range".
        scale_fn: instead of a mode, the height as a function of the cycle, or of the steps.
        scale_mode: "cycle" or "iterations".
        cycle_momentum: whether the momentum goes down while the rate goes up.
        base_momentum: its lower bound.
        max_momentum: its upper bound.
        last_epoch: the steps that are done, -1 for a new schedule.
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
        """Give the height of the cycle."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / 2.0 ** (x - 1)
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def get_lr(self) -> list[Any]:
        """Compute the next rates, and set the momentums."""
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
        """Give all but the optimizer; of a callable `scale_fn` its attributes."""
        state, custom = super().state_dict(), self._scale_fn_custom
        is_object = custom is not None and not isinstance(custom, types.FunctionType)
        state["_scale_fn_custom"] = dict(vars(custom)) if is_object else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take what `state_dict` gave."""
        state = dict(state_dict)
        attributes = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if attributes is not None:
            vars(self._scale_fn_custom).update(attributes)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine wave down to `eta_min`, again and again (Loshchilov and Hutter, ICLR 2017).

    Args:
        optimizer: whose rates it sets.
        T_0: steps of the first wave.
        T_mult: by how much each wave is longer than the one before.
        eta_min: the least rate.
        last_epoch: the steps that are done, -1 for a new schedule.
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

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Set the next rates.

        Args:
            epoch: where the schedule is, which may be between two steps; one step on unless given.
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
    """The rate up to `max_lr` and down to almost nothing (Smith and Topin, 2019).

    Args:
        optimizer: whose rates it sets.
        max_lr: the greatest rate, or one for each group.
        total_steps: how many steps there will be.
        epochs: instead, with `steps_per_epoch`.
        steps_per_epoch: the steps of each epoch.
        pct_start: the share of the way up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether the momentum goes down while the rate goes up.
        base_momentum: its lower bound.
        max_momentum: its upper bound.
        div_factor: by how much the first rate is less than `max_lr`.
        final_div_factor: by how much the last rate is less than the first.
        three_phase: whether the way down ends at the first rate, before it goes to the last.
        last_epoch: the steps that are done, -1 for a new schedule.
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
        """Compute the next rates, and set the momentums."""
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
    """Give where each phase ends, and from which to which value of a group it goes."""

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
