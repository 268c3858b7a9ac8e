"""Losses as modules."""

from collections.abc import Callable

from gt._gt import Tensor
from gt.nn import functional
from gt.nn.module import Module


class _Loss(Module):
    function: Callable[..., Tensor] = staticmethod(functional.mse_loss)

    def __init__(self, reduction: str = "mean", **options):
        super().__init__()
        self.reduction, self.options = reduction, options

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Give the loss of a prediction."""
        return type(self).function(prediction, target, reduction=self.reduction, **self.options)


class MSELoss(_Loss):
    """Mean of squared differences."""

    def __init__(self, reduction: str = "mean"):
        super().__init__(reduction)


class BCELoss(_Loss):
    """Binary cross entropy of probabilities."""

    function = staticmethod(functional.binary_cross_entropy)

    def __init__(self, reduction: str = "mean", weight: Tensor | None = None):
        super().__init__(reduction, weight=weight)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits."""

    function = staticmethod(functional.binary_cross_entropy_with_logits)

    def __init__(
        self,
        reduction: str = "mean",
        weight: Tensor | None = None,
        pos_weight: Tensor | None = None,
    ):
        super().__init__(reduction, weight=weight, pos_weight=pos_weight)


class CrossEntropyLoss(_Loss):
    """Cross entropy of logits against class indices or probabilities."""

    function = staticmethod(functional.cross_entropy_loss)

    def __init__(
        self,
        reduction: str = "mean",
        *,
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
    ):
        super().__init__(
            reduction, weight=weight, ignore_index=ignore_index, label_smoothing=label_smoothing
        )
