"""Spectral normalization of weights, computed by a hook before each forward.

Miyato et al., Spectral Normalization for Generative Adversarial Networks,
https://arxiv.org/abs/1802.05957
"""

from __future__ import annotations

from typing import Any

import gt
from gt._gt import Tensor
from gt.autograd import no_grad
from gt.nn.functional import normalize

from ..module import Module
from ..parameter import Parameter
from ._hooks import need_no_hook, remove_hook


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """Return a weight as a matrix with one row per index along an axis."""
    return weight.movedim(dim, 0).flatten(1)


def output_axis(module: Module) -> int:
    """Return the output axis of a module's weight: 1 for transposed convolutions, else 0."""
    return 1 if getattr(module, "transposed", False) else 0


class SpectralNorm:
    """A hook that sets a weight from its `_orig`, `_u` and `_v` before each forward."""

    def __init__(
        self,
        name: str = "weight",
        n_power_iterations: int = 1,
        dim: int = 0,
        eps: float = 1e-12,
    ):
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.eps = name, dim, eps
        self.n_power_iterations = n_power_iterations

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """Return the weight as a matrix."""
        return as_matrix(weight, self.dim)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """Return the normalized weight, with `do_power_iteration` after power iteration."""
        weight = getattr(module, f"{self.name}_orig")
        u, v = getattr(module, f"{self.name}_u"), getattr(module, f"{self.name}_v")
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(normalize(gt.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(normalize(gt.mv(matrix, v), dim=0, eps=self.eps))
        return weight / gt.dot(u, gt.mv(matrix, v))

    @staticmethod
    def apply(
        module: Module, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Register the hook on a module."""
        need_no_hook(module, SpectralNorm, name, "spectral_norm")
        norm = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        height, width = norm.reshape_weight_to_matrix(weight.detach()).shape
        u, v = weight.new_empty(height).normal_(), weight.new_empty(width).normal_()
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        # A plain attribute, so that the weight exists before the first forward.
        setattr(module, name, weight.detach())
        module.register_buffer(f"{name}_u", normalize(u, dim=0, eps=eps))
        module.register_buffer(f"{name}_v", normalize(v, dim=0, eps=eps))
        module.register_forward_pre_hook(norm)
        return norm

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for end in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        """Compute the weight of a module."""
        setattr(module, self.name, self.compute_weight(module, module.training))


def spectral_norm(
    module: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    """Divide a weight by its largest singular value, found by power iteration.

    Args:
        module: the module, which is changed.
        name: the name of the weight.
        n_power_iterations: the number of power iterations per forward in training mode.
        eps: the smallest norm that a vector is divided by.
        dim: the axis of the outputs; by default 0, and 1 for transposed convolutions.

    Returns:
        The module.

    `gt.nn.utils.parametrizations.spectral_norm` is newer.
    """
    dim = output_axis(module) if dim is None else dim
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Remove `spectral_norm` from a weight, make it a parameter again, and return the module."""
    remove_hook(module, SpectralNorm, name, "spectral_norm")
    return module
