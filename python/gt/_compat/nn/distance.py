"""Distances and similarities between vectors."""

from __future__ import annotations

from gt._gt import Tensor
from gt.nn import functional as F

from .forwarding import Forwarding, options
from .module import Module


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last axis.

    >>> gt.nn.PairwiseDistance()(gt.ones(1, 4), gt.zeros(1, 4)).shape
    (1,)
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the distances."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


@options
class CosineSimilarity(Forwarding, function=F.cosine_similarity):
    """The cosine of the angle between x1 and x2 along an axis; norms are clamped to `eps`."""

    dim: int = 1
    eps: float = 1e-8

    _shown_options = ()

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:  # type: ignore[override]
        """Return the similarities."""
        return self._call_function(x1, x2)
