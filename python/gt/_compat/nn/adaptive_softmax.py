"""A softmax over many classes, few of which are frequent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import gt
from gt._gt import Tensor
from gt.nn import functional as F

from .containers import ModuleList, Sequential
from .linear import Linear
from .module import Module


class AdaptiveLogSoftmax(NamedTuple):
    """The result of `AdaptiveLogSoftmaxWithLoss`."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """An approximate softmax over classes sorted by frequency (Grave et al., 2016).

    The head has an output for each of the most frequent classes, and one for each cluster of rarer
    classes. Each cluster has smaller layers, computed only for samples whose target is in it.

    Args:
        in_features: the length of the input's last axis.
        n_classes: the number of classes.
        cutoffs: the first class of each cluster.
        div_value: the factor by which layers shrink from one cluster to the next.
        head_bias: whether the head has a bias.
        device: accepted as in PyTorch; every device is the cluster.
        dtype: the parameters' dtype.

    >>> layer = gt.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10])
    >>> layer(gt.randn(4, 8), gt.tensor([0, 6, 12, 19], dtype=gt.int64)).output.shape
    (4,)
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        rising = all(first < second for first, second in zip(cutoffs, cutoffs[1:], strict=False))
        whole = all(int(cutoff) == cutoff for cutoff in cutoffs)
        if not rising or not whole or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1:
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an "
                "increasing order, where each value is between 1 and n_classes-1: "
                f"{cutoffs}, n_classes={n_classes}"
            )
        made: dict[str, Any] = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value, self.head_bias = div_value, head_bias
        self.shortlist_size, self.n_clusters = self.cutoffs[0], len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **made)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, hidden, bias=False, **made),
                    Linear(hidden, classes, bias=False, **made),
                )
            )

    def reset_parameters(self) -> None:
        """Initialize all parameters again."""
        self.head.reset_parameters()
        for layers in self.tail:
            for layer in layers.children():
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> AdaptiveLogSoftmax:
        """Return the log probability of each target, and the mean of their negatives.

        Waits for the number of targets in each cluster.
        """
        _check_shapes(input_, target_)
        batched = target_.ndim > 0
        input, target = (input_, target_) if batched else (input_[None], target_[None])
        order = target.argsort()
        ends = self._ends(target)
        pieces = []
        for i, layers in enumerate(self.tail):
            rows = order[ends[i] : ends[i + 1]]
            log_p = F.log_softmax(layers(input.index_select(0, rows)), dim=1)
            place = target.index_select(0, rows) - self.cutoffs[i]
            pieces.append(log_p.gather(1, place.unsqueeze(1)).squeeze(1))
        frequent = input.new_zeros((ends[0],))
        output = gt.cat([frequent, *pieces]).index_select(0, order.argsort())
        # The head has one output for all classes of a cluster.
        place = target
        for i, cutoff in enumerate(self.cutoffs[:-1]):
            place = gt.where(target >= cutoff, self.shortlist_size + i, place)
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, place.unsqueeze(1)).squeeze(1)
        loss = -output.mean()
        return AdaptiveLogSoftmax(output if batched else output.squeeze(0), loss)

    def _ends(self, target: Tensor) -> list[int]:
        """Return the number of targets below each cutoff."""
        below = [(target < bound).sum() for bound in (0, *self.cutoffs)]
        negative, *ends = gt.stack(below).tolist()
        if negative or ends[-1] != target.shape[0]:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found."
            )
        return ends

    def log_prob(self, input: Tensor) -> Tensor:
        """Return the log probabilities of all classes: (batch, n_classes)."""
        head = F.log_softmax(self.head(input), dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i, layers in enumerate(self.tail):
            place = self.shortlist_size + i
            parts.append(F.log_softmax(layers(input), dim=1) + head[:, place : place + 1])
        return gt.cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """Return the most probable class of each sample."""
        return self.log_prob(input).argmax(dim=1)


def _check_shapes(input: Tensor, target: Tensor) -> None:
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.ndim != target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found "
            f"inputs with size {tuple(input.shape)}"
        )
    if target.ndim == 1 and input.shape[0] != target.shape[0]:
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
