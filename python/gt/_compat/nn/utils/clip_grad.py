"""Gradient clipping, by norm or by value.

Norms and factors are tensors that are not fetched, so a training loop does not wait for them.
"""

from __future__ import annotations

import types
from collections.abc import Iterable

import gt
from gt._gt import Tensor
from gt._lines import warn
from gt.autograd import no_grad

Tensors = Tensor | Iterable[Tensor]


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Return the norm of several tensors as if they were one vector.

    Args:
        tensors: one tensor or an iterable of them.
        norm_type: the order p of the norm; `float("inf")` or `"inf"` for the largest value.
        error_if_nonfinite: whether to raise if the norm is not finite; this waits for the norm.
        foreach: accepted as in PyTorch; it has no effect.

    Returns:
        A tensor of shape ().

    >>> gt.nn.utils.get_total_norm([gt.tensor([3.0]), gt.tensor([4.0])])
    tensor(5., dtype=float32)
    """
    tensors = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return gt.tensor(0.0)
    with no_grad():
        norms = [gt.linalg.vector_norm(tensor, norm_type) for tensor in tensors]
        total = gt.linalg.vector_norm(gt.stack(norms), norm_type)
    if error_if_nonfinite and not total.isfinite().item():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
            "so it cannot be clipped. To disable this error and scale the gradients by the "
            "non-finite norm anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale gradients by `min(max_norm / (total_norm + 1e-6), 1)`, in place.

    Args:
        parameters: one tensor or an iterable of them; those without a gradient are skipped.
        max_norm: the largest norm of the gradients afterwards.
        total_norm: the current norm of the gradients, as returned by `get_total_norm`.
        foreach: accepted as in PyTorch; it has no effect.
    """
    grads = _grads(_listed(parameters))
    if not grads:
        return
    with no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients of parameters so that their norm is `max_norm` at most, in place.

    Args:
        parameters: one tensor or an iterable of them; those without a gradient are skipped.
        max_norm: the largest norm of the gradients afterwards, as if they were one vector.
        norm_type: the order p of the norm; `float("inf")` or `"inf"` for the largest value.
        error_if_nonfinite: whether to raise if the norm is not finite; this waits for the norm.
        foreach: accepted as in PyTorch; it has no effect.

    Returns:
        The norm before clipping, a tensor of shape ().

    >>> weight = gt.zeros(2, requires_grad=True)
    >>> (weight * gt.tensor([3.0, 4.0])).sum().backward()
    >>> gt.nn.utils.clip_grad_norm_([weight], max_norm=1.0)
    tensor(5., dtype=float32)
    """
    max_norm = float(max_norm)
    is_generator = isinstance(parameters, types.GeneratorType)
    listed = _listed(parameters)
    if is_generator and not listed:
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(_grads(listed), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(listed, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Call `clip_grad_norm_`, under its deprecated name."""
    warn(
        "`gt.nn.utils.clip_grad_norm` is now deprecated in favor of `gt.nn.utils.clip_grad_norm_`.",
        FutureWarning,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp the gradients of parameters to `[-clip_value, clip_value]`, in place.

    Args:
        parameters: one tensor or an iterable of them; those without a gradient are skipped.
        clip_value: the largest magnitude of an element afterwards.
        foreach: accepted as in PyTorch; it has no effect.
    """
    clip_value = float(clip_value)
    with no_grad():
        for grad in _grads(_listed(parameters)):
            grad.clamp_(min=-clip_value, max=clip_value)


def _listed(parameters: Tensors) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _grads(parameters: list[Tensor]) -> list[Tensor]:
    return [parameter.grad for parameter in parameters if parameter.grad is not None]
