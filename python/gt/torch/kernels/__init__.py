"""Kernels of PyTorch operators, for those whose names or arguments differ from GT's functions.

    @kernel("addmm")
    def addmm(self, mat1, mat2, *, beta=1, alpha=1): ...

is the kernel of every overload of `addmm`; in-place variants and those with `out` are derived from
it. These functions take and return GT tensors; functions registered by `raw` use PyTorch tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Operator name, with or without an overload -> function of GT tensors.
KERNELS: dict[str, Callable[..., Any]] = {}
#: Function -> its options for `torch_device.Kernel`.
OPTIONS: dict[Callable[..., Any], dict[str, Any]] = {}
#: Operator name with overload -> function of PyTorch tensors.
RAW: dict[str, Callable[..., Any]] = {}


def kernel(*names: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of GT tensors as the kernel of some operators.

    Args:
        names: The operators, with or without an overload.
        options: `mixed`: operands may be on the host, as indices may be. `operation`: the primitive
            that is issued without calling the function if only operands are passed, each with
            `rank` axes. `pointwise`: results have the memory layout of the first operand of their
            shape. `passes_numbers`: the function passes floats other than -1, 0, 0.5, 1 and 2 to
            operations unchanged.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if options:
            OPTIONS[function] = options
        KERNELS.update(dict.fromkeys(names, function))
        return function

    return register


def raw(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function of PyTorch tensors as the kernel of some operators."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        RAW.update(dict.fromkeys(names, function))
        return function

    return register


def load() -> None:
    """Import all modules of kernels, which register themselves."""
    from gt.torch.kernels import (  # noqa: F401
        attention,
        bags,
        batch_norm,
        cells,
        convolution,
        creation,
        distance,
        draws,
        elementwise,
        fourier,
        indexing,
        linalg,
        losses,
        memory,
        normalization,
        optimizers,
        pooling,
        products,
        ranges,
        reparameterization,
        resampling,
        transformer,
    )
