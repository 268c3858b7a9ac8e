"""From PyTorch's tensors to GT's and back, with gradients through both.

Each library has its own graph. Where a tensor passes from one to the other, a node of the one
stands for what lies behind it in the other: an *entrance* in GT's graph for a tensor of PyTorch's,
an *exit* in PyTorch's graph for one of GT's. A node's operands are the nodes on the far side that
it depends on, so each graph alone has all of the order.

A backward pass that reaches such a node in one graph runs the other's up to the nodes on its far
side, which keep what arrives there; the first graph goes on with that.
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
    """A tensor where it passes into the other library."""

    def __init__(self, tensor: Any, anchor: gt.Tensor | None = None) -> None:
        self.tensor = tensor
        #: Of an entrance: a leaf of GT's that what comes of it depends on.
        self.anchor = anchor
        #: The gradients that arrive, while the other library's pass is under way.
        self.arrived: list[Any] | None = None


#: All entrances that a graph of GT's still has.
_entrances: weakref.WeakSet[_Crossing] = weakref.WeakSet()


def _entrances_of(tensor: gt.Tensor) -> list[_Crossing]:
    """Give the entrances that a tensor of GT's depends on."""
    living = list(_entrances)
    found = _gt.depends(tensor, [one.anchor for one in living])
    return [one for one, is_one in zip(living, found, strict=True) if is_one]


def _exits_of(tensor: torch.Tensor) -> list[_Crossing]:
    """Give the exits that a tensor of PyTorch's depends on."""
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
    """Run a pass; give what arrives at each crossing, None where nothing does."""
    for crossing in crossings:
        crossing.arrived = []
    try:
        run()
        return [sum(one.arrived[1:], one.arrived[0]) if one.arrived else None for one in crossings]
    finally:
        for crossing in crossings:
            crossing.arrived = None


class _Entrance(gt.autograd.Function):
    """A tensor of PyTorch's in GT's graph."""

    @staticmethod
    def forward(ctx: Any, crossing: _Crossing, exits: list[_Crossing], *given: gt.Tensor) -> Any:
        ctx.crossing, ctx.exits = crossing, exits
        return _plain_from_torch(crossing.tensor)

    @staticmethod
    def backward(ctx: Any, grad: gt.Tensor) -> tuple:
        crossing, none = ctx.crossing, (None, None, None)
        if crossing.arrived is not None:
            crossing.arrived.append(grad)
            return (*none, *[None for _ in ctx.exits])
        tensor = crossing.tensor
        arriving = _plain_to_torch(grad, tensor.device)
        arrived = _through(ctx.exits, lambda: tensor.backward(arriving, retain_graph=True))
        return (*none, *(one if one is None else _plain_from_torch(one) for one in arrived))


class _Exit(torch.autograd.Function):
    """A tensor of GT's in PyTorch's graph."""

    @staticmethod
    def forward(
        ctx: Any, crossing: _Crossing, entrances: list[_Crossing], device: Any, *given: Any
    ) -> torch.Tensor:
        ctx.crossing, ctx.entrances = crossing, entrances
        return _plain_to_torch(crossing.tensor, device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
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
    """Give a tensor of PyTorch's as one of GT's; gradients flow back to it.

    One on the device "cluster" is taken as it is, without a copy. Later changes in place of either
    are not seen by the other.

    >>> gt.torch.from_torch(torch.ones(2, device="cluster")) + 1
    tensor([2., 2.], dtype=float32)
    """
    if not (tensor.requires_grad and torch.is_grad_enabled() and gt.is_grad_enabled()):
        return _plain_from_torch(tensor)
    # GT records what has an operand that requires a gradient.
    anchor = gt.zeros(0, requires_grad=True)
    crossing, exits = _Crossing(tensor, anchor), _exits_of(tensor)
    _entrances.add(crossing)
    return _Entrance.apply(crossing, exits, anchor, *(one.tensor for one in exits))


def to_torch(tensor: gt.Tensor, device: str = "cluster") -> torch.Tensor:
    """Give a tensor of GT's as one of PyTorch's; gradients flow back to it.

    Args:
        tensor: the tensor.
        device: "cluster", without a copy, or "cpu" for its values in this process.

    >>> gt.torch.to_torch(gt.ones(2)).device
    device(type='cluster', index=0)
    """
    if not (tensor.requires_grad and torch.is_grad_enabled() and gt.is_grad_enabled()):
        return _plain_to_torch(tensor, device)
    crossing, entrances = _Crossing(tensor), _entrances_of(tensor)
    anchor = torch.zeros(0, requires_grad=True, device="cpu")
    given = (one.tensor for one in entrances)
    return _Exit.apply(crossing, entrances, device, anchor, *given)
