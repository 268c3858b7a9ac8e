"""The memory order of the axes of results, which is the same as on the CPU.

Elementwise operators follow the rule of PyTorch's `TensorIterator`, which `gt-python` implements.
For others the order comes from a call on the device `meta`, whose tensors only have sizes and
strides. `RULES` lists the operators for which the CPU differs from `meta`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: A result's axes from the outermost to the innermost in memory, or None for row-major order.
Order = list[int] | None

#: Number of axes -> PyTorch's memory format in which channels are innermost.
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}

#: The maximum number of cached layouts per operator.
_MOST = 4096


def order_of(tensor: torch.Tensor) -> Order:
    """Return the memory order of a tensor's axes, or None for row-major order."""
    if tensor.is_contiguous():
        return None
    strides, shape = tensor.stride(), tensor.shape
    # The strides of axes of length 1 are arbitrary; these axes stay after their predecessors.
    order = sorted(
        (axis for axis in range(tensor.ndim) if shape[axis] != 1), key=lambda axis: -strides[axis]
    )
    for axis in range(tensor.ndim):
        if shape[axis] == 1:
            order.insert(order.index(axis - 1) + 1 if axis else 0, axis)
    return order if order != sorted(order) else None


def rule_of(
    operator: torch._ops.OpOverload, name: str
) -> Callable[[tuple[Any, ...], dict[str, Any] | None], list[Order]] | None:
    """Return a function from an operator's arguments to the memory orders of its results.

    Args:
        operator: The operator, in its functional form.
        name: Its name and overload.

    Returns:
        The function, or None if results are always in row-major order.
    """
    packet = name.partition(".")[0]
    rule = RULES.get(name, RULES.get(packet, _as_on_meta))
    if rule is None:
        return None
    known: dict[tuple[Any, ...], list[Order]] = {}

    def orders(args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> list[Order]:
        kwargs = kwargs or {}
        key = (_key(args), _key(tuple(kwargs.items())))
        found = known.get(key)
        if found is None:
            if len(known) >= _MOST:
                known.clear()
            found = known[key] = rule(operator, args, kwargs)
        return found

    return orders


def _key(given: Any) -> Any:
    """Return a cache key for arguments, in which tensors are represented by their layouts."""
    if isinstance(given, torch.Tensor):
        return tuple(given.shape), given.stride(), given.dtype
    if isinstance(given, list | tuple):
        return tuple(_key(one) for one in given)
    return type(given), given


def _on_meta(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        if given.device.type == "cpu" and not given.ndim:
            return given
        return torch.empty_strided(given.shape, given.stride(), dtype=given.dtype, device="meta")
    if isinstance(given, torch.device):
        return torch.device("meta")
    if isinstance(given, list | tuple):
        return type(given)(_on_meta(one) for one in given)
    return given


def _as_on_meta(
    operator: torch._ops.OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Order]:
    """Return the layouts that the operator's results have on the device `meta`."""
    try:
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            made = operator(*_on_meta(args), **{name: _on_meta(of) for name, of in kwargs.items()})
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        # The operator has no kernel for `meta`, or one that reads elements.
        return []
    return [order_of(of) for of in _tensors(made)]


def _tensors(made: Any) -> list[torch.Tensor]:
    if isinstance(made, torch.Tensor):
        return [made]
    if isinstance(made, list | tuple):
        return [tensor for one in made for tensor in _tensors(one)]
    return []


def is_channels_last(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is channels last, and not also contiguous."""
    if tensor.ndim not in CHANNELS_LAST or tensor.is_contiguous():
        return False
    return tensor.is_contiguous(memory_format=CHANNELS_LAST[tensor.ndim])


Rule = Callable[[torch._ops.OpOverload, tuple[Any, ...], dict[str, Any]], list[Order]]

#: Operators whose layout on the CPU differs from that on `meta`; None for those that always return
#: row-major results.
RULES: dict[str, Rule | None] = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv", "embedding"), None),
    # Their operands are made contiguous.
    **dict.fromkeys(("convolution_overrideable", "convolution_backward_overrideable"), None),
    # The result is a contiguous copy, changed in place.
    "masked_fill": None,
}
