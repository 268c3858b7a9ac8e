"""Losses for regression: distances and negative log likelihoods."""

from __future__ import annotations

import math
from typing import Any

import gt
from gt._gt import Tensor
from gt.ops.registry import function

from .common import (
    NN,
    as_target,
    check_alike,
    check_reduction,
    in_float32,
    reduced,
    reduction_of,
    weighted,
)


@function(namespace=NN, autocast="float32")
@in_float32
def l1_loss(
    input: Tensor,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return |input - target|; with `weight`, its weighted mean.

    Args:
        input: the predictions.
        target: the true values, of the input's shape.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
        weight: a factor for each element, of the same shape.

    >>> gt.nn.functional.l1_loss(gt.tensor([1.0, 5.0]), gt.zeros(2))
    tensor(3., dtype=float32)
    """
    error = _difference("l1_loss", input, target).abs()
    return _by_weight("l1_loss", error, weight, reduction_of(reduction, size_average, reduce))


@function(namespace=NN, autocast="float32")
@in_float32
def mse_loss(
    input: Tensor,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return (input - target)²; with `weight`, its weighted mean.

    Args:
        input: the predictions.
        target: the true values, of the input's shape.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
        weight: a factor for each element, of the same shape.

    >>> gt.nn.functional.mse_loss(gt.tensor([1.0, 5.0]), gt.zeros(2))
    tensor(13., dtype=float32)
    """
    error = _difference("mse_loss", input, target)
    return _by_weight(
        "mse_loss", error * error, weight, reduction_of(reduction, size_average, reduce)
    )


def _difference(name: str, input: Tensor, target: Any) -> Tensor:
    target = as_target(target, input)
    check_alike(name, input, target)
    return input - target


def _by_weight(name: str, loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    if weight is None:
        return reduced(name, loss, reduction)
    _check_weight(name, loss, weight)
    if reduction == "mean":
        return (loss * weight).sum() / weight.sum()
    return reduced(name, loss * weight, reduction)


def _check_weight(name: str, loss: Tensor, weight: Tensor) -> None:
    if weight.shape != loss.shape:
        raise ValueError(
            f"{name}: weight has shape {weight.shape}, expected that of input, {loss.shape}"
        )


@function(namespace=NN, autocast="float32")
@in_float32
def smooth_l1_loss(
    input: Tensor,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return d² / (2 beta) for distances d below beta, d - beta / 2 for others (Girshick, 2015).

    Args:
        input: the predictions.
        target: the true values, of the input's shape.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
        beta: the distance from which on the loss is a straight line; 0 for `l1_loss`.

    >>> gt.nn.functional.smooth_l1_loss(gt.tensor([0.5, 3.0]), gt.zeros(2), reduction="none")
    tensor([0.125, 2.5  ], dtype=float32)
    """
    if beta < 0:
        raise ValueError(f"smooth_l1_loss: beta is {beta}, expected 0 or more")
    distance = _difference("smooth_l1_loss", input, target).abs()
    loss = distance if beta == 0 else _huber(distance, beta) / beta
    return reduced("smooth_l1_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def huber_loss(
    input: Tensor,
    target: Any,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return d² / 2 for distances d below delta, delta * (d - delta / 2) for others (Huber, 1964).

    Args:
        input: the predictions.
        target: the true values, of the input's shape.
        reduction: "mean", "sum" or "none".
        delta: the distance from which on the loss is a straight line, above 0.
        weight: a factor for each element, of the same shape.

    >>> gt.nn.functional.huber_loss(gt.tensor([0.5, 3.0]), gt.zeros(2), reduction="none")
    tensor([0.125, 2.5  ], dtype=float32)
    """
    if delta <= 0:
        raise ValueError(f"huber_loss: delta is {delta}, expected more than 0")
    loss = _huber(_difference("huber_loss", input, target).abs(), delta)
    if weight is not None:
        _check_weight("huber_loss", loss, weight)
    return reduced("huber_loss", weighted(loss, weight), reduction)


def _huber(distance: Tensor, delta: float) -> Tensor:
    straight = delta * (distance - 0.5 * delta)
    return gt.where(distance < delta, 0.5 * distance * distance, straight)


@function(namespace=NN, autocast="float32")
@in_float32
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return target * (log(target) - input), the divergence of target from exp(input).

    Args:
        input: logarithms of probabilities.
        target: probabilities, or their logarithms.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum", "none", or "batchmean": the sum divided by the batch size.
        log_target: whether the target holds logarithms.

    >>> p = gt.tensor([0.5, 0.5])
    >>> gt.nn.functional.kl_div(p.log(), p, reduction="sum")
    tensor(0., dtype=float32)
    """
    if log_target:
        loss = target.exp() * (target - input)
    else:
        zero = target == 0
        # 0 log 0 and its gradient are 0: the logarithm must not see zeros.
        loss = gt.where(zero, 0, target * gt.where(zero, 1, target).log()) - target * input
    reduction = reduction_of(reduction, size_average, reduce)
    if reduction == "batchmean":
        return loss.sum() / (input.shape[0] if input.ndim else 1)
    return reduced("kl_div", loss, reduction)


@function(namespace=NN, autocast="float32")
@in_float32
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-08,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log likelihood of a target under a Poisson distribution.

    Args:
        input: logarithms of rates, or rates.
        target: the counts.
        log_input: whether the input holds logarithms.
        full: whether to add Stirling's form of log(target!) for targets above 1.
        size_average: deprecated.
        eps: added to rates, so that their logarithm is finite.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".

    >>> gt.nn.functional.poisson_nll_loss(gt.tensor([0.0]), gt.tensor([2.0]))
    tensor(1., dtype=float32)
    """
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        above = target > 1
        count = gt.where(above, target, 1)
        stirling = count * count.log() - count + 0.5 * (2 * math.pi * count).log()
        loss = loss + gt.where(above, stirling, 0)
    return reduced("poisson_nll_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-06,
    reduction: str = "mean",
) -> Tensor:
    """Return (log(var) + (input - target)² / var) / 2: minus the log of a normal density.

    Args:
        input: the means.
        target: the observed values.
        var: the variances: a number, or a tensor of the input's shape, where the last axis may
            be missing and one may have length 1. Negative variances yield NaN.
        full: whether to add the constant log(2 pi) / 2.
        eps: the smallest variance; gradients flow as if variances were not clamped.
        reduction: "mean", "sum" or "none".

    >>> gt.nn.functional.gaussian_nll_loss(gt.tensor([1.0]), gt.tensor([3.0]), 1.0)
    tensor(2., dtype=float32)
    """
    check_reduction("gaussian_nll_loss", reduction)
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError(f"gaussian_nll_loss: var is {var}, expected 0 or more")
        var = gt.full_like(input, var)
    var = _fitting_variance(input, gt.where(var < 0, float("nan"), var))
    with gt.no_grad():
        var._assign(var.maximum(eps), "gaussian_nll_loss")
    error = input - target
    loss = 0.5 * (var.log() + error * error / var)
    return reduced("gaussian_nll_loss", loss + 0.5 * math.log(2 * math.pi) * full, reduction)


def _fitting_variance(input: Tensor, var: Tensor) -> Tensor:
    """Return variances in a shape that broadcasts to the input's."""
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        return var.unsqueeze(-1)
    lengths = zip(input.shape, var.shape, strict=False)
    if var.ndim == input.ndim and sum(own for of, own in lengths if of != own) == 1:
        return var
    raise ValueError(
        f"gaussian_nll_loss: var of shape {var.shape} does not fit input of shape {input.shape}, "
        "expected the same, without the last axis, or with one axis of length 1"
    )
