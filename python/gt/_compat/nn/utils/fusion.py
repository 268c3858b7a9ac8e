"""Fusion of a batch normalization with fixed statistics into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

import gt
from gt._gt import Tensor

from ..parameter import Parameter


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution that also performs the batch normalization after it.

    Args:
        conv: a convolution, in evaluation mode.
        bn: the batch normalization of its result, in evaluation mode, with running statistics.
        transpose: whether the convolution is transposed, with output channels along axis 1.

    Returns:
        A copy of `conv` with fused weight and bias.

    Raises:
        ValueError: a module is in training mode, or has no running statistics.
    """
    _check_eval("fuse_conv_bn_eval", conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return the weight and bias of a convolution that also performs a batch normalization.

    Args:
        conv_w: the convolution's weight.
        conv_b: its bias, or None.
        bn_rm: the running mean.
        bn_rv: the running variance.
        bn_eps: added to the variance.
        bn_w: the normalization's weight; None for 1.
        bn_b: its bias; None for 0.
        transpose: whether the output channels are axis 1 of the weight rather than axis 0.
    """
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    scale, bias, trains = _folded(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    weight = (conv_w * scale.reshape(shape)).to(dtype=conv_w.dtype)
    bias = bias.to(dtype=conv_w.dtype if conv_b is None else conv_b.dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, trains)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a linear layer that also performs the batch normalization after it.

    Args:
        linear: a linear layer, in evaluation mode.
        bn: the batch normalization of its result, in evaluation mode, with running statistics; for
            the same number of features, or for one.

    Returns:
        A copy of `linear` with fused weight and bias.

    Raises:
        ValueError: a module is in training mode or has no running statistics, or features differ.
    """
    _check_eval("fuse_linear_bn_eval", linear, bn)
    if bn.num_features not in (1, linear.out_features):
        raise ValueError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Return the weight and bias of a linear layer that also performs a batch normalization.

    The arguments are as for `fuse_conv_bn_weights`.
    """
    scale, bias, trains = _folded(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=linear_w.dtype)
    bias = bias.to(dtype=linear_w.dtype if linear_b is None else linear_b.dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, trains)


def _folded(
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    eps: float,
    bn_weight: Tensor | None,
    bn_bias: Tensor | None,
) -> tuple[Tensor, Tensor, bool]:
    """Return the factor of each feature, the fused bias, and whether it requires gradients."""
    scale = gt.rsqrt(variance + eps)
    if bn_weight is not None:
        scale = scale * bn_weight
    trains = bias is not None and bias.requires_grad
    remaining = (-mean if bias is None else bias - mean) * scale
    return scale, remaining if bn_bias is None else remaining + bn_bias, trains


def _check_eval(name: str, layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise ValueError(f"{name}: Fusion only for eval!\n  hint: call eval() on both modules")
    if bn.running_mean is None or bn.running_var is None:
        raise ValueError(f"{name}: the batch normalization has no running mean and variance")
