"""`SummaryWriter` takes GT's tensors, that of PyTorch and that of tensorboardX."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import gt
from gt.integrations.functions import Function, converting, replace


def extend(package: ModuleType) -> None:
    """Replace the functions by which a package converts tensors.

    Args:
        package: `torch.utils.tensorboard` or `tensorboardX`.
    """
    replace(package, "make_np", converting(_array))
    replace(package, "tensor_proto", converting(_torch_tensor))
    replace(package, "graph", _refusing)


def _array(tensor: gt.Tensor) -> Any:
    """Return a tensor's values as an array; float16 for bfloat16, as PyTorch's writer."""
    tensor = tensor.detach()
    return (tensor.half() if tensor.dtype == gt.bfloat16 else tensor).numpy()


def _torch_tensor(tensor: gt.Tensor) -> Any:
    """Return a tensor of PyTorch."""
    import torch

    return torch.from_dlpack(tensor.detach())


def _refusing(graph: Function) -> Function:
    """Return `add_graph`'s function with an error for modules of GT."""

    @functools.wraps(graph)
    def refused(model: Any, *args: Any, **options: Any) -> Any:
        if isinstance(model, gt.nn.Module):
            raise TypeError(
                "add_graph draws what PyTorch's tracer records, which takes modules of PyTorch, "
                f"not {type(model).__name__} of gt\n  hint: add_text(tag, str(model))"
            )
        return graph(model, *args, **options)

    return refused
