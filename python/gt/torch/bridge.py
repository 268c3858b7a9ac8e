"""Conversion of PyTorch tensors to GT tensors and back, with gradients through both.

Each library has its own autograd graph. Where a tensor crosses from one library to the other, a
node represents it in the other graph: an *entrance* in GT's graph for a PyTorch tensor, an *exit*
in PyTorch's graph for a GT tensor. A node's operands are the crossings in the other direction that
it depends on, so that each graph has the complete order of crossings.

When a backward pass in one graph reaches such a node, the node runs a backward pass in the other
graph, in which the crossings it depends on collect the arriving gradients. The first pass then
continues with these gradients.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

import gt
from gt import _gt
from gt._gt import torch_device
from gt.torch.kernels import memory


class _Crossing:
    """A tensor that crosses into the other library."""

    def __init__(self, tensor: Any, anchor: gt.Tensor | None = None) -> None:
        self.tensor = tensor
        #: For an entrance: a leaf in GT's graph that all tensors computed from it depend on.
        self.anchor = anchor
        #: The gradients collected during the other library's backward pass; None outside of one.
        self.arrived: list[Any] | None = None


#: All entrances that a GT graph still refers to.
_entrances: weakref.WeakSet[_Crossing] = weakref.WeakSet()


def _entrances_of(tensor: gt.Tensor) -> list[_Crossing]:
    """Return the entrances that a GT tensor depends on."""
    living = [(one, one.anchor) for one in _entrances if one.anchor is not None]
    found = _gt.depends(tensor, [anchor for _, anchor in living])
    return [one for (one, _), is_one in zip(living, found, strict=True) if is_one]


def _exits_of(tensor: torch.Tensor) -> list[_Crossing]:
    """Return the exits that a PyTorch tensor depends on."""
    seen, pending, exits = set(), [tensor.grad_fn], []
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        crossing = getattr(node, "crossing", None)
        if isinstance(crossing, _Crossing):
            exits.append(crossing)
        pending.extend(of for of, _ in node.next_functions)
    return exits


def _through(crossings: list[_Crossing], run: Any) -> list[Any]:
    """Run a backward pass; return the sum of gradients that reach each crossing, or None."""
    for crossing in crossings:
        crossing.arrived = []
    try:
        run()
        return [sum(one.arrived[1:], one.arrived[0]) if one.arrived else None for one in crossings]
    finally:
        for crossing in crossings:
            crossing.arrived = None


class _Entrance(gt.autograd.Function):
    """A PyTorch tensor in GT's graph."""

    @staticmethod
    def forward(ctx: Any, crossing: _Crossing, exits: list[_Crossing], *given: gt.Tensor) -> Any:
        ctx.crossing, ctx.exits = crossing, exits
        return _plain_from_torch(crossing.tensor)

    @staticmethod
    def backward(ctx: Any, grad: gt.Tensor) -> tuple[Any, ...]:
        crossing, none = ctx.crossing, (None, None, None)
        if crossing.arrived is not None:
            crossing.arrived.append(grad)
            return (*none, *[None for _ in ctx.exits])
        tensor = crossing.tensor
        arriving = _plain_to_torch(grad, tensor.device)
        arrived = _through(ctx.exits, lambda: tensor.backward(arriving, retain_graph=True))
        return (*none, *(one if one is None else _plain_from_torch(one) for one in arrived))


class _Exit(torch.autograd.Function):
    """A GT tensor in PyTorch's graph."""

    @staticmethod
    def forward(
        ctx: Any, crossing: _Crossing, entrances: list[_Crossing], device: Any, *given: Any
    ) -> torch.Tensor:
        ctx.crossing, ctx.entrances = crossing, entrances
        return _plain_to_torch(crossing.tensor, device)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]  # PyTorch gives it no types
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        crossing, none = ctx.crossing, (None, None, None, None)
        if crossing.arrived is not None:
            crossing.arrived.append(grad)
            return (*none, *[None for _ in ctx.entrances])
        tensor = crossing.tensor
        arriving = _plain_from_torch(grad)
        arrived = _through(
            ctx.entrances, lambda: gt.autograd.backward(tensor, arriving, retain_graph=True)
        )
        devices = [one.tensor.device for one in ctx.entrances]
        made = zip(arrived, devices, strict=True)
        return (*none, *(one if one is None else _plain_to_torch(one, at) for one, at in made))


def _plain_from_torch(tensor: torch.Tensor) -> gt.Tensor:
    if tensor.device.type == "cluster":
        return memory.seen(tensor)
    return memory.from_host(tensor)


def _plain_to_torch(tensor: gt.Tensor, device: Any) -> torch.Tensor:
    if torch.device(device).type == "cluster":
        return torch_device.wrap(tensor.detach())
    return memory.to_host(tensor)


def from_torch(tensor: torch.Tensor) -> gt.Tensor:
    """Convert a PyTorch tensor to a GT tensor; gradients flow back to it.

    A tensor on the device "cluster" is not copied. Later in-place changes of either tensor do not
    affect the other.

    >>> gt.torch.from_torch(torch.ones(2, device="cluster")) + 1
    tensor([2., 2.], dtype=float32)
    """
    if not (tensor.requires_grad and torch.is_grad_enabled() and gt.is_grad_enabled()):
        return _plain_from_torch(tensor)
    # GT records an operation only if an operand requires a gradient.
    anchor = gt.zeros(0, requires_grad=True)
    crossing, exits = _Crossing(tensor, anchor), _exits_of(tensor)
    _entrances.add(crossing)
    return _Entrance.apply(crossing, exits, anchor, *(one.tensor for one in exits))


def to_torch(tensor: gt.Tensor, device: str = "cluster") -> torch.Tensor:
    """Convert a GT tensor to a PyTorch tensor; gradients flow back to it.

    Args:
        tensor: The tensor.
        device: "cluster", which makes no copy, or "cpu" to fetch its values.

    >>> gt.torch.to_torch(gt.ones(2)).device
    device(type='cluster', index=0)
    """
    if not (tensor.requires_grad and torch.is_grad_enabled() and gt.is_grad_enabled()):
        return _plain_to_torch(tensor, device)
    crossing, entrances = _Crossing(tensor), _entrances_of(tensor)
    anchor = torch.zeros(0, requires_grad=True, device="cpu")
    given = (one.tensor for one in entrances)
    return _Exit.apply(crossing, entrances, device, anchor, *given)
