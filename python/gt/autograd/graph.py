"""What PyTorch's programs ask about the graph of a result: whether there is one."""

from __future__ import annotations

from typing import NoReturn

from gt._gt import Tensor

__all__ = ["Node"]


class Node:
    """Stands for what a tensor was computed by: `tensor.grad_fn`, which is None for a leaf.

    >>> x = gt.ones(2, requires_grad=True)
    >>> x.grad_fn is None, (x * 2).grad_fn
    (True, <gt.autograd.graph.Node>)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "<gt.autograd.graph.Node>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a grad_fn has no '{name}' here: it says that a tensor has a history, not which\n"
            "  hint: gt.debug.get_tape() lists the recorded operations"
        )


def _grad_fn(tensor: Tensor) -> Node | None:
    """What the tensor was computed by, or None for a leaf; see `gt.autograd.graph.Node`."""
    return None if tensor.is_leaf else Node()


Tensor.grad_fn = property(_grad_fn)  # type: ignore[assignment]


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"gt.autograd.graph has no '{name}': what a backward pass needs is kept by the core, where "
        "no function of the program can pack it\n"
        "  hint: gt.utils.checkpoint.checkpoint keeps less, and computes it again"
    )
