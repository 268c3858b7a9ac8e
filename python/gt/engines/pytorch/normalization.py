"""Layer normalization and its gradients with PyTorch."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, *, axes: int, eps: float) -> Tensor:
    """Normalize the last axes; weight and bias have these axes, or none."""
    row = x.shape[x.ndim - axes :]
    if weight.shape == bias.shape == row:
        return torch.layer_norm(x, row, weight, bias, eps)
    return torch.layer_norm(x, row, eps=eps) * weight + bias


def layer_norm_backward(
    grad: Tensor, x: Tensor, weight: Tensor, *, axes: int, eps: float
) -> Tensor:
    """Return the gradient with respect to the input; mean and variance are recomputed."""
    return _backward(grad * weight, x, None, axes, eps, (True, False, False))[0]


def layer_norm_weight_backward(grad: Tensor, x: Tensor, *, axes: int, eps: float) -> Tensor:
    """Return the gradient with respect to the weight."""
    weight = x.new_ones(x.shape[x.ndim - axes :])
    return _backward(grad, x, weight, axes, eps, (False, True, False))[1]


def _backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    axes: int,
    eps: float,
    wanted: tuple[bool, bool, bool],
) -> tuple[Tensor, Tensor, Tensor]:
    row = x.shape[x.ndim - axes :]
    x = x.contiguous()
    _, mean, scale = torch.native_layer_norm(x, row, None, None, eps)
    return torch.ops.aten.native_layer_norm_backward(
        grad.contiguous(), x, row, mean, scale, weight, None, wanted
    )


NORMALIZATION: dict[str, Callable[..., Any]] = {
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
    "layer_norm_weight_backward": layer_norm_weight_backward,
}
