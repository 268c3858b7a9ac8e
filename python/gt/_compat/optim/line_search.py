"""A line search for the strong Wolfe conditions.

Nocedal and Wright, Numerical Optimization, 2006, algorithms 3.5 and 3.6, with the interpolation and
safeguards of minFunc (Schmidt, 2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from gt._gt import Tensor


class Trial(NamedTuple):
    """A step length, with the function's value, gradient and slope along the line there."""

    length: float
    value: float
    gradient: Tensor
    slope: float


class Found(NamedTuple):
    """The result of a search, and the number of evaluations it took."""

    trial: Trial
    evaluations: int


def strong_wolfe(
    evaluate: Callable[[float], tuple[float, Tensor]],
    direction: Tensor,
    length: float,
    start: Trial,
    max_evaluations: int,
    sufficient: float = 1e-4,
    curvature: float = 0.9,
    tolerance: float = 1e-9,
) -> Found:
    """Find a step length that satisfies the strong Wolfe conditions.

    Args:
        evaluate: returns value and gradient at a step length.
        direction: the direction of the line.
        length: the first step length to try.
        start: the function at length 0.
        max_evaluations: the maximum number of rounds, after which the best trial is returned.
        sufficient: the fraction of the initial slope at which the value must decrease.
        curvature: the fraction of the initial slope that may remain.
        tolerance: the search ends when the bracket's length times the largest element of the
            direction is below this.
    """
    extent = float(direction.abs().max())

    def try_at(at: float) -> Trial:
        value, gradient = evaluate(at)
        return Trial(at, value, gradient, float(gradient.dot(direction)))

    def is_too_high(trial: Trial) -> bool:
        return trial.value > start.value + sufficient * trial.length * start.slope

    def is_flat(trial: Trial) -> bool:
        return abs(trial.slope) <= -curvature * start.slope

    trial, before = try_at(length), start
    evaluations, rounds = 1, 0
    while True:
        if rounds >= max_evaluations:
            bracket = [start, trial]
            break
        if is_too_high(trial) or (rounds > 1 and trial.value >= before.value):
            bracket = [before, trial]
            break
        if is_flat(trial):
            return Found(trial, evaluations)
        if trial.slope >= 0:
            bracket = [before, trial]
            break
        least = trial.length + 0.01 * (trial.length - before.length)
        following = _interpolate(before, trial, (least, trial.length * 10))
        before, trial = trial, try_at(following)
        evaluations, rounds = evaluations + 1, rounds + 1

    bracket.sort(key=lambda one: one.value)
    low, high = bracket
    stalled = False
    while rounds < max_evaluations:
        if abs(high.length - low.length) * extent < tolerance:
            break
        at, stalled = _safeguarded(_interpolate(low, high), low.length, high.length, stalled)
        trial = try_at(at)
        evaluations, rounds = evaluations + 1, rounds + 1
        if is_too_high(trial) or trial.value >= low.value:
            high = trial
            if high.value < low.value:
                low, high = high, low
            continue
        is_done = is_flat(trial)
        if not is_done and trial.slope * (high.length - low.length) >= 0:
            high = low
        low = trial
        if is_done:
            break
    return Found(low, evaluations)


def _interpolate(one: Trial, other: Trial, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimizer, within bounds, of the cubic through two trials."""
    first, last = (one, other) if one.length <= other.length else (other, one)
    low, high = bounds or (first.length, last.length)
    rise = (one.value - other.value) / (one.length - other.length)
    middle = one.slope + other.slope - 3 * rise
    square = middle**2 - one.slope * other.slope
    if square < 0:
        return (low + high) / 2
    radius = math.sqrt(square)
    bend = last.slope - first.slope + 2 * radius
    if bend == 0:  # a straight line
        return low if last.slope + radius > middle else high
    share = (last.slope + radius - middle) / bend
    return min(max(last.length - (last.length - first.length) * share, low), high)


def _safeguarded(at: float, one: float, other: float, stalled: bool) -> tuple[float, bool]:
    """Move a trial away from the ends of its bracket if the previous one was near them too.

    Returns the step length, and whether it is near an end of the bracket.
    """
    low, high = min(one, other), max(one, other)
    margin = 0.1 * (high - low)
    if min(high - at, at - low) >= margin:
        return at, False
    if stalled or at >= high or at <= low:
        return (high - margin if abs(at - high) < abs(at - low) else low + margin), False
    return at, True
