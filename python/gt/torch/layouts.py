"""In which order the axes of results lie in memory: as those of the CPU's kernels.

Elementwise operators order axes as PyTorch's `TensorIterator` does, which `gt-python` has. Others
are asked what they give on the device `meta`, whose tensors have sizes and strides alone. `RULES`
has those of which the CPU gives another order than `meta`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: The order of a result's axes from the outermost to the innermost, or None for its own.
Order = list[int] | None

#: PyTorch's format of images whose channels are inside, by the number of axes.
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}

#: Layouts of results that are known already, at most.
_MOST = 4096


def order_of(tensor: torch.Tensor) -> Order:
    """Return the order of a tensor's axes in memory, or None if it is their own."""
    if tensor.is_contiguous():
        return None
    strides, shape = tensor.stride(), tensor.shape
    # Axes of length 1 say nothing; they stay beside their neighbours.
    order = sorted(
        (axis for axis in range(tensor.ndim) if shape[axis] != 1), key=lambda axis: -strides[axis]
    )
    for axis in range(tensor.ndim):
        if shape[axis] == 1:
            order.insert(order.index(axis - 1) + 1 if axis else 0, axis)
    return order if order != sorted(order) else None


def rule_of(
    operator: torch._ops.OpOverload, name: str
) -> Callable[[tuple, dict[str, Any] | None], list[Order]] | None:
    """Return the function that tells how the results of an operator lie, by its arguments.

    Args:
        operator: the operator, in its functional form.
        name: its name and overload.

    Returns:
        None where results are always in row-major order.
    """
    packet = name.partition(".")[0]
    rule = RULES.get(name, RULES.get(packet, _as_on_meta))
    if rule is None:
        return None
    known: dict[tuple, list[Order]] = {}

    def orders(args: tuple, kwargs: dict[str, Any] | None) -> list[Order]:
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
    """Return what decides on the layout of results: of tensors, their own."""
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
    operator: torch._ops.OpOverload, args: tuple, kwargs: dict[str, Any]
) -> list[Order]:
    """Return the layouts that the operator's results have on the device `meta`."""
    try:
        with torch._C._DisableTorchDispatch(), torch.no_grad():
            made = operator(*_on_meta(args), **{name: _on_meta(of) for name, of in kwargs.items()})
    except (RuntimeError, NotImplementedError, TypeError, ValueError):
        # It has no kernel there, or one that looks at elements.
        return []
    return [order_of(of) for of in _tensors(made)]


def _tensors(made: Any) -> list[torch.Tensor]:
    if isinstance(made, torch.Tensor):
        return [made]
    if isinstance(made, list | tuple):
        return [tensor for one in made for tensor in _tensors(one)]
    return []


def is_channels_last(tensor: torch.Tensor) -> bool:
    """Return whether a batch of images lies with the channels inside, and not in its own order."""
    if tensor.ndim not in CHANNELS_LAST or tensor.is_contiguous():
        return False
    return tensor.is_contiguous(memory_format=CHANNELS_LAST[tensor.ndim])


Rule = Callable[[torch._ops.OpOverload, tuple, dict[str, Any]], list[Order]]

#: Operators of which the CPU gives another layout than `meta`, and those that always give row-major
#: results, which need not be asked.
RULES: dict[str, Rule | None] = {
    **dict.fromkeys(("mm", "bmm", "addmm", "baddbmm", "mv", "dot", "addmv", "embedding"), None),
    # Given to these in row-major order.
    **dict.fromkeys(("convolution_overrideable", "convolution_backward_overrideable"), None),
    # Copied in row-major order, then changed.
    "masked_fill": None,
}
