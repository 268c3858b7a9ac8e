"""Functions of `gt.nn.functional` under their names in `torch` itself.

Some have their parameters in another order there, and none has `inplace`.
"""

from __future__ import annotations

import gt
from gt._gt import Tensor
from gt.ops.annotations import Size
from gt.ops.registry import function, operation


@operation(autocast="lower")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return x above 0, else weight * x: `gt.nn.functional.prelu`.

    >>> gt.prelu(gt.tensor([-2.0]), gt.tensor([0.5]))
    tensor([-1.], dtype=float32)
    """
    return gt.nn.functional.prelu(input, weight)


@operation
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Return x where |x| > lambd, else 0: `gt.nn.functional.hardshrink`.

    >>> gt.hardshrink(gt.tensor([0.3, 2.0]))
    tensor([0., 2.], dtype=float32)
    """
    return gt.nn.functional.hardshrink(input, lambd)


@function(autocast="widest")
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return input1 @ weight[k] @ input2 for each k: `gt.nn.functional.bilinear`.

    >>> gt.bilinear(gt.ones(1, 2), gt.ones(1, 2), gt.ones(1, 2, 2))
    tensor([[4.]], dtype=float32)
    """
    return gt.nn.functional.bilinear(input1, input2, weight, bias)


@function(autocast="float32")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle of vectors: `gt.nn.functional.cosine_similarity`.

    >>> gt.cosine_similarity(gt.tensor([[1.0, 0.0]]), gt.tensor([[0.0, 1.0]]))
    tensor([0.], dtype=float32)
    """
    return gt.nn.functional.cosine_similarity(x1, x2, dim, eps)


@function
def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the norm of x1 - x2 + eps: `gt.nn.functional.pairwise_distance`.

    >>> gt.pairwise_distance(gt.zeros(1, 1), gt.ones(1, 1), eps=0.0)
    tensor([1.], dtype=float32)
    """
    return gt.nn.functional.pairwise_distance(x1, x2, p, eps, keepdim)


@function(autocast="float32")
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """Return the distances of all pairs of rows: `gt.nn.functional.pdist`.

    >>> gt.pdist(gt.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.], dtype=float32)
    """
    return gt.nn.functional.pdist(input, p)


@function
def rms_norm(
    input: Tensor, normalized_shape: Size, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Return x divided by its root mean square: `gt.nn.functional.rms_norm`.

    >>> gt.rms_norm(gt.tensor([[2.0, 2.0]]), (2,), eps=0.0)
    tensor([[1., 1.]], dtype=float32)
    """
    return gt.nn.functional.rms_norm(input, normalized_shape, weight, eps)


@function
def celu(input: Tensor, alpha: float = 1.0) -> Tensor:
    """Return max(0, x) + min(0, alpha * (exp(x / alpha) - 1)): `gt.nn.functional.celu`.

    >>> gt.celu(gt.tensor([1.0]))
    tensor([1.], dtype=float32)
    """
    return gt.nn.functional.celu(input, alpha)


@function
def selu(input: Tensor) -> Tensor:
    """Apply `gt.nn.functional.selu`.

    >>> gt.selu(gt.tensor([0.0]))
    tensor([0.], dtype=float32)
    """
    return gt.nn.functional.selu(input)


@function
def rrelu(
    input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False
) -> Tensor:
    """Apply `gt.nn.functional.rrelu`.

    >>> gt.rrelu(gt.tensor([1.0]))
    tensor([1.], dtype=float32)
    """
    return gt.nn.functional.rrelu(input, lower, upper, training)


@function
def threshold(input: Tensor, threshold: float, value: float) -> Tensor:
    """Return x above the threshold, else the value: `gt.nn.functional.threshold`.

    >>> gt.threshold(gt.tensor([1.0, 3.0]), 2, 0)
    tensor([0., 3.], dtype=float32)
    """
    return gt.nn.functional.threshold(input, threshold, value)


@function
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Set elements to 0 with probability p in training: `gt.nn.functional.dropout`.

    >>> gt.dropout(gt.ones(2), 0.5, False)
    tensor([1., 1.], dtype=float32)
    """
    return gt.nn.functional.dropout(input, p, train)


@function
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `gt.nn.functional.alpha_dropout`.

    >>> gt.alpha_dropout(gt.ones(2), 0.5, False)
    tensor([1., 1.], dtype=float32)
    """
    return gt.nn.functional.alpha_dropout(input, p, train)


@function
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Apply `gt.nn.functional.feature_alpha_dropout`.

    >>> gt.feature_alpha_dropout(gt.ones(1, 2, 1), 0.5, False).shape
    (1, 2, 1)
    """
    return gt.nn.functional.feature_alpha_dropout(input, p, train)


@function
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` that `indices` select: `gt.nn.functional.embedding`.

    >>> gt.embedding(gt.tensor([[1.0], [2.0]]), gt.tensor([1], dtype=gt.int64))
    tensor([[2.]], dtype=float32)
    """
    padding = None if padding_idx == -1 else padding_idx
    return gt.nn.functional.embedding(
        indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse
    )


@function(autocast="float32")
def layer_norm(
    input: Tensor,
    normalized_shape: Size,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """Apply `gt.nn.functional.layer_norm`; `cudnn_enable` has no effect.

    >>> gt.layer_norm(gt.ones(1, 2), (2,))
    tensor([[0., 0.]], dtype=float32)
    """
    return gt.nn.functional.layer_norm(input, normalized_shape, weight, bias, eps)


@function(autocast="float32")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """Apply `gt.nn.functional.group_norm`; `cudnn_enabled` has no effect.

    >>> gt.group_norm(gt.ones(1, 2, 1), 1).shape
    (1, 2, 1)
    """
    return gt.nn.functional.group_norm(input, num_groups, weight, bias, eps)


@function
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """Apply `gt.nn.functional.batch_norm`; `cudnn_enabled` has no effect.

    >>> gt.batch_norm(gt.ones(1, 2), None, None, gt.ones(2), gt.ones(2), False, 0.1, 0.0, True)
    tensor([[0., 0.]], dtype=float32)
    """
    return gt.nn.functional.batch_norm(
        input, running_mean, running_var, weight, bias, training, momentum, eps
    )
