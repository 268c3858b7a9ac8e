"""The graph of a result, as far as PyTorch programs ask for it: whether it exists."""

from __future__ import annotations

from typing import NoReturn

from gt._absent import absent
from gt._gt import Tensor
from gt._public import show_callers
from gt.ops.registry import extend_tensor

__all__ = ["Node"]

save_on_cpu = absent(
    "gt.autograd.graph.save_on_cpu",
    "workers keep what a backward pass needs, and move what does not fit in memory to their "
    "--spill-dir; gt.utils.checkpoint.checkpoint keeps less",
)


class Node:
    """Stands for the operation that computed a tensor: `tensor.grad_fn`, None for a leaf.

    >>> x = gt.ones(2, requires_grad=True)
    >>> x.grad_fn is None, (x * 2).grad_fn
    (True, <gt.autograd.graph.Node>)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "<gt.autograd.graph.Node>"

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a grad_fn has no '{name}' in GT: it only shows that a tensor has a history\n"
            "  hint: gt.debug.get_tape() lists the recorded operations"
        )


def _grad_fn(tensor: Tensor) -> Node | None:
    """Return a node if the tensor was computed, or None for a leaf; see `Node`."""
    return None if tensor.is_leaf else Node()


extend_tensor(grad_fn=property(_grad_fn))


def __getattr__(name: str) -> NoReturn:
    raise AttributeError(
        f"gt.autograd.graph has no '{name}': the core keeps what a backward pass needs, where "
        "hooks of the program cannot pack it\n"
        "  hint: gt.utils.checkpoint.checkpoint keeps fewer, and recomputes the others"
    )


show_callers(globals())
