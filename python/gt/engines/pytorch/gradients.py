"""Gradients for which PyTorch has kernels."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

_aten = torch.ops.aten


def softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    """Return the gradient of softmax from its output."""
    return _aten._softmax_backward_data.default(grad, output, dim, output.dtype)


def log_softmax_backward(grad: Tensor, output: Tensor, dim: int) -> Tensor:
    """Return the gradient of log_softmax from its output."""
    return _aten._log_softmax_backward_data.default(grad, output, dim, output.dtype)


def gelu_backward(grad: Tensor, x: Tensor, approximate: str) -> Tensor:
    """Return the gradient of gelu."""
    return _aten.gelu_backward.default(grad, x, approximate=approximate)


GRADIENTS: dict[str, Callable[..., Any]] = {
    "softmax_backward": softmax_backward,
    "log_softmax_backward": log_softmax_backward,
    "gelu_backward": gelu_backward,
}
