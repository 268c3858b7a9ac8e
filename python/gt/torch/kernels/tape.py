"""Derivatives by GT's tape, for PyTorch operators that are derivatives of other operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import gt


def vjp(
    function: Callable[..., Any], grad: Any, *inputs: gt.Tensor | None, wanted: Sequence[bool] = ()
) -> tuple[gt.Tensor | None, ...]:
    """Return the gradients of a function's inputs for a gradient of its result.

    Operations of the forward pass on which no gradient depends are not computed.

    Args:
        function: A function of GT tensors.
        grad: The gradient of its result.
        inputs: The function's arguments; None has no gradient.
        wanted: Whether to compute the gradient of each input; by default that of all.
    """
    flags = [*wanted, *[True] * (len(inputs) - len(wanted))]
    wants = [of is not None and flag for of, flag in zip(inputs, flags, strict=True)]
    with gt.enable_grad():
        given = [
            of if of is None else of.detach().requires_grad_(wants[at])
            for at, of in enumerate(inputs)
        ]
        result = function(*given)
        leaves = [of for of, want in zip(given, wants, strict=True) if want and of is not None]
        if not (leaves and result.requires_grad):
            return tuple(_zeros(of, want) for of, want in zip(inputs, wants, strict=True))
        found = iter(gt.autograd.grad(result, leaves, grad, allow_unused=True))
    made = [next(found) if want else None for want in wants]
    return tuple(
        _zeros(of, want) if one is None else one
        for one, of, want in zip(made, inputs, wants, strict=True)
    )


def _zeros(of: gt.Tensor | None, wanted: bool) -> gt.Tensor | None:
    return gt.zeros_like(of) if wanted and of is not None else None


def vjp_of_first(function: Callable[..., Any], grad: Any, input: gt.Tensor) -> gt.Tensor:
    """Return the gradient of a function's only input."""
    (found,) = vjp(function, grad, input)
    assert found is not None
    return found
