"""Weights as a magnitude and a direction, computed by a hook before each forward.

Salimans and Kingma, Weight Normalization, https://arxiv.org/abs/1602.07868
"""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor
from gt._lines import warn

from ..module import Module
from ..parameter import Parameter
from ._hooks import need_no_hook, remove_hook


def norm_except(v: Tensor, dim: int) -> Tensor:
    """Return the Euclidean norm over all axes but `dim`; over all, of shape (), if `dim` is -1."""
    if dim == -1:
        return gt.linalg.vector_norm(v)
    kept = dim % v.dim()
    others = [axis for axis in range(v.dim()) if axis != kept]
    return gt.linalg.vector_norm(v, dim=others, keepdim=True) if others else v.abs()


def normed(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """Return `v` scaled to the norms `g` over all axes but one."""
    return v * (g / norm_except(v, dim))


class WeightNorm:
    """A hook that sets a weight from its `_g` and `_v` before each forward."""

    def __init__(self, name: str, dim: int | None):
        self.name, self.dim = name, -1 if dim is None else dim

    def compute_weight(self, module: Module) -> Tensor:
        """Return the weight."""
        g, v = getattr(module, f"{self.name}_g"), getattr(module, f"{self.name}_v")
        return normed(v, g, self.dim)

    @staticmethod
    def apply(module: Module, name: str, dim: int | None) -> WeightNorm:
        """Register the hook on a module."""
        warn(
            "`gt.nn.utils.weight_norm` is deprecated in favor of "
            "`gt.nn.utils.parametrizations.weight_norm`.",
            FutureWarning,
        )
        need_no_hook(module, WeightNorm, name, "weight_norm")
        norm, weight = WeightNorm(name, dim), getattr(module, name)
        del module._parameters[name]
        magnitude = norm_except(weight.detach(), norm.dim)
        module.register_parameter(f"{name}_g", Parameter(magnitude))
        module.register_parameter(f"{name}_v", Parameter(weight.detach()))
        setattr(module, name, norm.compute_weight(module))
        module.register_forward_pre_hook(norm)
        return norm

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[f"{self.name}_g"]
        del module._parameters[f"{self.name}_v"]
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the weight of a module."""
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Compute a weight as `g * v / |v|`, from the parameters `weight_g` and `weight_v`.

    Args:
        module: the module, which is changed.
        name: the name of the weight.
        dim: the axis along which each slice has a norm; None for one norm of the whole tensor.

    Returns:
        The module.

    Deprecated in favor of `gt.nn.utils.parametrizations.weight_norm`; it warns.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Remove `weight_norm` from a weight, make it a parameter again, and return the module."""
    remove_hook(module, WeightNorm, name, "weight_norm")
    return module
