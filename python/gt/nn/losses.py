"""Losses as modules."""

from collections.abc import Callable

from gt._gt import Tensor
from gt.nn import functional
from gt.nn.module import Module


class _Loss(Module):
    function: Callable[..., Tensor] = staticmethod(functional.mse_loss)

    def __init__(self, reduction: str = "mean"):
        super().__init__()
        self.reduction = reduction

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Give the loss of a prediction."""
        return type(self).function(prediction, target, self.reduction)


class MSELoss(_Loss):
    """Mean of squared differences."""


class BCELoss(_Loss):
    """Binary cross entropy of probabilities."""

    function = staticmethod(functional.binary_cross_entropy)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits."""

    function = staticmethod(functional.binary_cross_entropy_with_logits)


class CrossEntropyLoss(_Loss):
    """Cross entropy of logits against class indices or probabilities."""

    function = staticmethod(functional.cross_entropy_loss)
