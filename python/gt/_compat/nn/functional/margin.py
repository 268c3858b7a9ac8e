"""Losses with a margin between matching and other inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import gt
from gt._gt import Tensor, arange_beside
from gt.ops.registry import function

from .common import NN, check_alike, check_reduction, in_float32, reduced, weighted
from .smooth import logsigmoid


@function(namespace=NN, autocast="float32")
@in_float32
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the input x where the target is 1, max(0, margin - x) where it is -1.

    >>> x, y = gt.tensor([0.25, 0.25]), gt.tensor([1, -1])
    >>> gt.nn.functional.hinge_embedding_loss(x, y, reduction="none")
    tensor([0.25, 0.75], dtype=float32)
    """
    apart = gt.where(target != 1, (margin - input).clamp(min=0), 0)
    loss = apart + gt.where(target != -1, input, 0)
    return reduced("hinge_embedding_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return 1 - cos of two vectors where the target is 1, max(0, cos - margin) where it is -1.

    Args:
        input1: a vector, or one in each row.
        input2: a tensor of the same shape.
        target: 1 or -1 for each pair.
        margin: from -1 to 1.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".

    >>> x, y = gt.tensor([[1.0, 0.0]]), gt.tensor([[0.0, 1.0]])
    >>> gt.nn.functional.cosine_embedding_loss(x, y, gt.tensor([1]))
    tensor(1., dtype=float32)
    """
    if target.ndim > 1 or input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise ValueError(
            f"cosine_embedding_loss: inputs of shapes {input1.shape} and {input2.shape} and target "
            f"of shape {target.shape} do not fit, expected (N, D), (N, D), (N) or (D), (D), ()"
        )
    small = 1e-12
    sizes = ((input1 * input1).sum(-1) + small) * ((input2 * input2).sum(-1) + small)
    cosine = (input1 * input2).sum(-1) / sizes.sqrt()
    apart = gt.where(target == -1, (cosine - margin).clamp(min=0), 0)
    loss = gt.where(target == 1, 1 - cosine, 0) + apart
    return reduced("cosine_embedding_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin - target * (input1 - input2)); the target is 1 or -1.

    >>> gt.nn.functional.margin_ranking_loss(gt.tensor([1.0]), gt.tensor([3.0]), gt.tensor([1]))
    tensor(2., dtype=float32)
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise ValueError(
            f"margin_ranking_loss: shapes {input1.shape}, {input2.shape} and {target.shape} must "
            "have equally many axes"
        )
    loss = (margin - target * (input1 - input2)).clamp(min=0)
    return reduced("margin_ranking_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return log(1 + exp(-target * input)) for targets of 1 and -1.

    >>> gt.nn.functional.soft_margin_loss(gt.tensor([0.0]), gt.tensor([1.0]))
    tensor(0.6931472, dtype=float32)
    """
    check_alike("soft_margin_loss", input, target)
    loss = -logsigmoid(target * input)
    return reduced("soft_margin_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean binary cross entropy of logits over classes, the last axis.

    >>> x, y = gt.zeros(1, 2), gt.tensor([[1.0, 0.0]])
    >>> gt.nn.functional.multilabel_soft_margin_loss(x, y)
    tensor(0.6931472, dtype=float32)
    """
    loss = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    # As in PyTorch, the divisor is the input's length even if the weight broadcasts that axis.
    loss = weighted(loss, weight).sum(-1) / input.shape[-1]
    return reduced("multilabel_soft_margin_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of max(0, margin - x[y] + x[i])ᵖ over all classes; the term of i = y is 0.

    Args:
        input: scores x of classes, one sample or one in each row.
        target: the class y of each sample.
        p: 1 or 2.
        margin: the margin by which the score of a sample's class should exceed other scores.
        weight: a factor for each class.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".

    >>> x, y = gt.tensor([[0.5, 1.0]]), gt.tensor([1], dtype=gt.int64)
    >>> gt.nn.functional.multi_margin_loss(x, y)
    tensor(0.25, dtype=float32)
    """
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: p is {p}, expected 1 or 2")
    scores, index = _rows(input), target.reshape(-1, 1)
    beyond = (margin - scores.gather(1, index) + scores).relu()
    beyond = beyond if p == 1 else beyond * beyond
    if weight is not None:
        beyond = beyond * weight.expand(scores.shape).gather(1, index)
    classes = arange_beside(scores, scores.shape[1])
    loss = gt.where(classes == index, 0, beyond).sum(1) / scores.shape[1]
    loss = loss.reshape(target.shape)
    return reduced("multi_margin_loss", loss, reduction, size_average, reduce)


def _rows(input: Tensor) -> Tensor:
    """Return one sample, or one in each row, as rows."""
    return input.reshape(-1, input.shape[-1] if input.ndim else 1)


@function(namespace=NN, autocast="float32")
@in_float32
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Sum max(0, 1 - x[y] + x[i]) over target classes y and others i, and divide by all classes.

    Args:
        input: scores x of classes, one sample or one in each row.
        target: the classes of each sample up to the first -1, in the input's shape.
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".

    >>> x, y = gt.tensor([0.5, 1.0]), gt.tensor([1, -1], dtype=gt.int64)
    >>> gt.nn.functional.multilabel_margin_loss(x, y)
    tensor(0.25, dtype=float32)
    """
    check_alike("multilabel_margin_loss", input, target)
    scores, target = _rows(input), _rows(target)
    listed = (target < 0).cumsum(-1) == 0
    index = gt.where(listed, target, 0)
    own = gt.zeros_like(scores).scatter_add(-1, index, listed._cast(scores.dtype)) > 0
    beyond = (1 - scores.gather(-1, index).unsqueeze(-1) + scores.unsqueeze(-2)).relu()
    loss = gt.where(listed.unsqueeze(-1) & ~own.unsqueeze(-2), beyond, 0).sum((-2, -1))
    loss = (loss / scores.shape[-1]).reshape(input.shape[:-1])
    return reduced("multilabel_margin_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin + d(anchor, positive) - d(anchor, negative)), where d is a p-norm.

    Args:
        anchor: vectors along the last axis.
        positive: vectors that should be near the anchor.
        negative: vectors that should be far from the anchor.
        margin: the margin between the two distances.
        p: the norm's exponent.
        eps: added to differences, so that their norm has a gradient.
        swap: whether to use d(positive, negative) where it is less (Balntas et al., 2016).
        size_average: deprecated.
        reduce: deprecated.
        reduction: "mean", "sum" or "none".

    >>> gt.nn.functional.triplet_margin_loss(gt.zeros(1, 2), gt.ones(1, 2), gt.ones(1, 2))
    tensor(1.0000001, dtype=float32)
    """

    def distance(x: Tensor, y: Tensor) -> Tensor:
        return gt.nn.functional.pairwise_distance(x, y, p, eps)

    loss = _triplet("triplet_margin_loss", distance, (anchor, positive, negative), margin, swap)
    return reduced("triplet_margin_loss", loss, reduction, size_average, reduce)


@function(namespace=NN, autocast="float32")
@in_float32
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin + d(anchor, positive) - d(anchor, negative)) for any distance d.

    By default, d is `pairwise_distance`; other parameters as for `triplet_margin_loss`.

    >>> x, y, d = gt.zeros(1, 2), gt.ones(1, 2), lambda x, y: (x - y).abs().sum(-1)
    >>> gt.nn.functional.triplet_margin_with_distance_loss(x, y, 2 * y, distance_function=d)
    tensor(0., dtype=float32)
    """
    name = "triplet_margin_with_distance_loss"
    check_reduction(name, reduction)
    distance = distance_function or gt.nn.functional.pairwise_distance
    return reduced(
        name, _triplet(name, distance, (anchor, positive, negative), margin, swap), reduction
    )


def _triplet(
    name: str, distance: Callable[..., Tensor], of: Sequence[Tensor], margin: float, swap: bool
) -> Tensor:
    anchor, positive, negative = of
    if margin <= 0:
        raise ValueError(f"{name}: margin is {margin}, expected more than 0")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ValueError(
            f"{name}: shapes {anchor.shape}, {positive.shape} and {negative.shape} must have "
            "equally many axes"
        )
    far = distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return (margin + distance(anchor, positive) - far).clamp(min=0)
