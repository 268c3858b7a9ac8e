"""Losses with a margin between matching and other inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, InitVar

from gt._gt import Tensor
from gt.nn import functional as F

from .distance import PairwiseDistance
from .forwarding import options
from .loss import _Loss, _WeightedLoss


@options
class _MarginLoss(_Loss):
    """A loss with a margin, 0 by default."""

    margin: float = 0.0
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"


@options
class HingeEmbeddingLoss(_MarginLoss, function=F.hinge_embedding_loss):
    """The input where the target is 1, max(0, margin - input) where it is -1."""

    margin: float = 1.0


class CosineEmbeddingLoss(_MarginLoss, function=F.cosine_embedding_loss):
    """1 - cos(x1, x2) where the target is 1, max(0, cos(x1, x2) - margin) where it is -1."""

    def forward(  # type: ignore[override]
        self, input1: Tensor, input2: Tensor, target: Tensor
    ) -> Tensor:
        """Return the loss."""
        return self._call_function(input1, input2, target)


class MarginRankingLoss(_MarginLoss, function=F.margin_ranking_loss):
    """max(0, -target * (x1 - x2) + margin); x1 should be larger where the target is 1."""

    def forward(  # type: ignore[override]
        self, input1: Tensor, input2: Tensor, target: Tensor
    ) -> Tensor:
        """Return the loss."""
        return self._call_function(input1, input2, target)


class SoftMarginLoss(_Loss, function=F.soft_margin_loss):
    """log(1 + exp(-target * input)) for targets of 1 and -1."""


class MultiLabelMarginLoss(_Loss, function=F.multilabel_margin_loss):
    """The hinge loss between each class of a target and each other class; -1 ends a target."""


@options
class MultiMarginLoss(_WeightedLoss, function=F.multi_margin_loss):
    """The hinge loss max(0, margin - x[target] + x[i])**p over the other classes.

    Args:
        p: 1 or 2.
        margin: the margin.
        weight: a factor for each class.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
    """

    p: int = 1
    margin: float = 1.0
    weight: InitVar[Tensor | None] = None
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def __post_init__(
        self, weight: Tensor | None, size_average: bool | None, reduce: bool | None
    ) -> None:
        super().__post_init__(weight, size_average, reduce)
        if self.p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, got {self.p}")
        if weight is not None and weight.ndim != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, got "
                f"{weight.ndim}D instead"
            )


def _check_margin(name: str, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"{name}: expected margin to be greater than 0, got {margin} instead")


@options
class TripletMarginLoss(_Loss, function=F.triplet_margin_loss):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) (Balntas et al., 2016).

    Args:
        margin: the margin.
        p: the exponent of the distance.
        eps: added to differences.
        swap: whether to use the distance from the positive to the negative if it is smaller.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".
    """

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: InitVar[bool | None] = None
    reduce: InitVar[bool | None] = None
    reduction: str = "mean"

    def __post_init__(self, size_average: bool | None, reduce: bool | None) -> None:
        super().__post_init__(size_average, reduce)
        _check_margin("TripletMarginLoss", self.margin)

    def forward(  # type: ignore[override]
        self, anchor: Tensor, positive: Tensor, negative: Tensor
    ) -> Tensor:
        """Return the loss."""
        return self._call_function(anchor, positive, negative)


@options
class TripletMarginWithDistanceLoss(_Loss, function=F.triplet_margin_with_distance_loss):
    """A `TripletMarginLoss` with a custom distance.

    Args:
        distance_function: returns the distances of two tensors' rows; `PairwiseDistance()` if None.
        margin: the margin.
        swap: whether to use the distance from the positive to the negative if it is smaller.
        reduction: "mean", "sum" or "none".
    """

    _: KW_ONLY
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None
    margin: float = 1.0
    swap: bool = False
    reduction: str = "mean"

    def __post_init__(self) -> None:
        _check_margin("TripletMarginWithDistanceLoss", self.margin)
        self.distance_function = self.distance_function or PairwiseDistance()

    def forward(  # type: ignore[override]
        self, anchor: Tensor, positive: Tensor, negative: Tensor
    ) -> Tensor:
        """Return the loss."""
        return self._call_function(anchor, positive, negative)
