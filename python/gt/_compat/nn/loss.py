"""Losses for regression and distributions, and the common bases of losses."""

from __future__ import annotations

from dataclasses import KW_ONLY, InitVar
from typing import Any

from gt._gt import Tensor
from gt.nn import functional as F

from .forwarding import Forwarding, options
from .functional.common import reduction_of


class _Loss(Forwarding):
    """A loss whose values are averaged, summed or returned per element."""

    reduction: str
    _shown_options = ()

    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ):
        super().__init__()
        self.reduction = reduction_of(reduction, size_average, reduce)

    def __post_init__(self, size_average: bool | None = None, reduce: bool | None = None) -> None:
        self.reduction = reduction_of(self.reduction, size_average, reduce)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """Return the loss."""
        return self._call_function(input, target)


class _WeightedLoss(_Loss):
    """A loss with a tensor of weights."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)

    def __post_init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
    ) -> None:
        super().__post_init__(size_average, reduce)
        self.register_buffer("weight", weight)


class L1Loss(_Loss, function=F.l1_loss):
    """The mean of |input - target|.

    Args:
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none", as for all losses.

    >>> gt.nn.L1Loss(reduction="sum")(gt.tensor([1.0, 3.0]), gt.zeros(2))
    tensor(4., dtype=float32)
    """


class MSELoss(_Loss, function=F.mse_loss):
    """The mean of (input - target)²."""


@options
class SmoothL1Loss(_Loss, function=F.smooth_l1_loss):
    """The mean of |d| - beta / 2, or of d² / (2 beta) where |d| is below beta (Girshick, 2015)."""

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    beta: float = 1.0


@options
class HuberLoss(_Loss, function=F.huber_loss):
    """The mean of delta (|d| - delta / 2), or of d² / 2 where |d| is below delta (Huber, 1964)."""

    reduction: str = "mean"
    delta: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(self.delta)}")


@options
class PoissonNLLLoss(_Loss, function=F.poisson_nll_loss):
    """The negative log likelihood of counts under Poisson distributions.

    Args:
        log_input: whether the input is the logarithm of the rate.
        full: whether Stirling's approximation of the constant term is added.
        size_average: deprecated.
        eps: added to rates before taking their logarithm, without `log_input`.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
    """

    log_input: bool = True
    full: bool = False
    size_average: InitVar[bool | None] = None
    eps: float = 1e-8
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:  # type: ignore[override]
        """Return the loss."""
        return self._call_function(log_input, target)


@options
class GaussianNLLLoss(_Loss, function=F.gaussian_nll_loss):
    """The negative log likelihood of normal distributions (Nix and Weigend, 1994).

    Args:
        full: whether the constant term is added.
        eps: the smallest variance.
        reduction: "mean", "sum" or "none".
    """

    _: KW_ONLY
    full: bool = False
    eps: float = 1e-6
    reduction: str = "mean"

    def forward(  # type: ignore[override]
        self, input: Tensor, target: Tensor, var: Tensor | float
    ) -> Tensor:
        """Return the loss for means `input` and variances `var`."""
        return self._call_function(input, target, var)


@options
class KLDivLoss(_Loss, function=F.kl_div):
    """The Kullback-Leibler divergence target * (log(target) - input) from log probabilities.

    Args:
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum", "none", or "batchmean": the sum divided by the batch size.
        log_target: whether the target also contains logarithms.
    """

    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"
    log_target: bool = False


@options
class CTCLoss(_Loss, function=F.ctc_loss):
    """Connectionist temporal classification of sequences (Graves et al., 2006).

    Args:
        blank: the index of the blank label.
        reduction: "mean", after each loss is divided by its target's length, "sum" or "none".
        zero_infinity: whether infinite losses and their gradients are replaced by zeros.
    """

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    def forward(  # type: ignore[override]
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        """Return the loss for log probabilities of shape (time, batch, classes)."""
        return self._call_function(log_probs, targets, input_lengths, target_lengths)
