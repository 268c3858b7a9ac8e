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
#: What `torch_device.Kernel` is told of a function besides, by the function.
OPTIONS: dict[Callable[..., Any], dict[str, Any]] = {}
#: Functions of PyTorch's tensors, by the operator's name and overload.
RAW: dict[str, Callable[..., Any]] = {}


def kernel(*names: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function of GT's tensors the kernel of some operators.

    Args:
        names: the operators, with or without an overload.
        options: `mixed`, whether operands may also be the host's, as places may be; `operation`,
            the primitive that is issued without a call of the function where nothing but operands
            is given, of which each has `rank` axes; `pointwise`, whether results lie in memory as
            the first operand of their shape does; `passes_numbers`, whether the function hands
            floats other than -1, 0, 0.5, 1 and 2 to operations as they are.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if options:
            OPTIONS[function] = options
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
        resampling,
        transformer,
    )
