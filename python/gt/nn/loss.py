"""Losses for regression and distributions, and the common bases of losses."""

from __future__ import annotations

from typing import Any

from gt._gt import Tensor
from gt.nn import functional as F
from gt.nn.functional.common import reduction_of
from gt.nn.module import Module


class _Loss(Module):
    """A loss whose values are averaged, summed or returned per element."""

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ):
        super().__init__()
        self.reduction = reduction_of(reduction, size_average, reduce)


class _WeightedLoss(_Loss):
    """A loss with a tensor of weights."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """The mean of |input - target|.

    Args:
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none", as for all losses.

    >>> gt.nn.L1Loss(reduction="sum")(gt.tensor([1.0, 3.0]), gt.zeros(2))
    tensor(4., dtype=float32)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """The mean of (input - target)²."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """The mean of |d| - beta / 2, or of d² / (2 beta) where |d| is below beta (Girshick, 2015)."""

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """The mean of delta (|d| - delta / 2), or of d² / 2 where |d| is below delta (Huber, 1964)."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class PoissonNLLLoss(_Loss):
    """The negative log likelihood of counts under Poisson distributions.

    Args:
        log_input: whether the input is the logarithm of the rate.
        full: whether Stirling's approximation of the constant term is added.
        size_average: deprecated.
        eps: added to rates before taking their logarithm, without `log_input`.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log likelihood of normal distributions (Nix and Weigend, 1994).

    Args:
        full: whether the constant term is added.
        eps: the smallest variance.
        reduction: "mean", "sum" or "none".
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(None, None, reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Return the loss for means `input` and variances `var`."""
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence target * (log(target) - input) from log probabilities.

    Args:
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum", "none", or "batchmean": the sum divided by the batch size.
        log_target: whether the target also contains logarithms.
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class CTCLoss(_Loss):
    """Connectionist temporal classification of sequences (Graves et al., 2006).

    Args:
        blank: the index of the blank label.
        reduction: "mean", after each loss is divided by its target's length, "sum" or "none".
        zero_infinity: whether infinite losses and their gradients are replaced by zeros.
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False):
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        """Return the loss for log probabilities of shape (time, batch, classes)."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )
