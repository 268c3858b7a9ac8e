"""Muon: momentum with orthogonalized updates."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor

from .optimizer import Group, Optimizer, Parameters
from .options import options

_COEFFICIENTS = (3.4445, -4.7750, 2.0315)
_ADJUSTMENTS = ("original", "match_rms_adamw", "spectral_unclamped")


class Muon(Optimizer):
    """Muon (Jordan, 2024), for the matrices of a network; use AdamW for other parameters.

    Args:
        params: the parameters, all of two axes.
        lr: the learning rate.
        weight_decay: the decoupled weight decay.
        momentum: the decay of the running average of gradients.
        nesterov: whether to use Nesterov momentum.
        ns_coefficients: the coefficients of the Newton-Schulz iteration.
        eps: the lower bound of the norm that updates are divided by.
        ns_steps: the number of Newton-Schulz iterations.
        adjust_lr_fn: how the rate depends on the shape: "original" (the default),
            "match_rms_adamw" or "spectral_unclamped".
    """

    _counters = ()

    def __init__(
        self,
        params: Parameters,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(
                f"adjust_lr_fn is {adjust_lr_fn!r}, expected one of {', '.join(_ADJUSTMENTS)}"
            )
        super().__init__(params, options(locals()))
        for parameter in self.params:
            if parameter.ndim != 2:
                raise ValueError(
                    "Muon only supports 2D parameters whereas we found a parameter with size: "
                    f"{parameter.shape}"
                )

    def _update(self, parameter: Tensor, grad: Tensor, state: dict[str, Any], group: Group) -> None:
        if parameter.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        momentum, lr = group["momentum"], group["lr"]
        before = state.get("momentum_buffer")
        before = gt.zeros_like(grad) if before is None else before
        mean = state["momentum_buffer"] = before.lerp(grad, 1 - momentum)
        update = grad.lerp(mean, momentum) if group["nesterov"] else mean
        update = orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        parameter.mul_(1 - lr * group["weight_decay"])
        rate = _adjusted(lr, group["adjust_lr_fn"], *parameter.shape)
        parameter.add_scaled_(update.to(parameter.dtype), -rate)


def orthogonal(
    matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Tensor:
    """Return an approximation of the nearest semi-orthogonal matrix, in bfloat16.

    It is computed by a quintic Newton-Schulz iteration, whose default coefficients maximize the
    slope at zero.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    found = matrix.to(gt.bfloat16)
    is_tall = matrix.shape[0] > matrix.shape[1]
    found = found.T if is_tall else found
    found = found / found.norm().clamp(min=eps)
    for _ in range(steps):
        gram = found @ found.T
        change = gt.addmm(gram, gram, gram, beta=b, alpha=c)
        found = gt.addmm(found, change, found, beta=a)
    return found.T if is_tall else found


def _adjusted(lr: float, how: str | None, rows: int, columns: int) -> float:
    if how == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    if how == "spectral_unclamped":
        return lr * math.sqrt(rows / columns)
    return lr * math.sqrt(max(1, rows / columns))
