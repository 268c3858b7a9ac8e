"""What an operator of PyTorch's is in terms of GT, where names or arguments differ.

    @kernel("addmm")
    def addmm(self, mat1, mat2, *, beta=1, alpha=1): ...

is the kernel of every overload of `addmm`; in-place forms and those with `out` follow from it.
Functions take and give tensors of GT's; those registered by `raw` take PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: Functions of GT's tensors, by the operator's name, with or without an overload.
KERNELS: dict[str, Callable[..., Any]] = {}
#: Those that also take tensors of the host's, as places may be.
MIXED: set[Callable[..., Any]] = set()
#: Functions of PyTorch's tensors, by the operator's name and overload.
RAW: dict[str, Callable[..., Any]] = {}


def kernel(*names: str, mixed: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function of GT's tensors the kernel of some operators.

    Args:
        names: the operators, with or without an overload.
        mixed: whether operands may also be the host's, and are brought to the cluster then.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if mixed:
            MIXED.add(function)
        KERNELS.update(dict.fromkeys(names, function))
        return function

    return register


def raw(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function of PyTorch's tensors the kernel of some operators."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        RAW.update(dict.fromkeys(names, function))
        return function

    return register


def load() -> None:
    """Import all kernels, which register themselves."""
    from gt.torch.kernels import (  # noqa: F401
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
        resampling,
        transformer,
    )
