"""`SummaryWriter` takes GT's tensors, that of PyTorch and that of tensorboardX."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import gt


def extend(package: ModuleType) -> None:
    """Replace the functions by which a package converts tensors, in each of its modules.

    Args:
        package: `torch.utils.tensorboard` or `tensorboardX`.
    """
    replaced = {
        "make_np": _converting(_array),
        "tensor_proto": _converting(_torch_tensor),
        "graph": _refusing,
    }
    inside = f"{package.__name__}."
    for name, module in list(sys.modules.items()):
        if name.startswith(inside):
            for function, replace in replaced.items():
                own = vars(module).get(function)
                if callable(own):
                    setattr(module, function, replace(own))


def _array(value: Any) -> Any:
    """Return a tensor's values as an array; float16 for bfloat16, as PyTorch's writer."""
    if not isinstance(value, gt.Tensor):
        return value
    value = value.detach()
    return (value.half() if value.dtype == gt.bfloat16 else value).numpy()


def _torch_tensor(value: Any) -> Any:
    """Return a tensor as one of PyTorch."""
    if not isinstance(value, gt.Tensor):
        return value
    import torch

    return torch.from_dlpack(value.detach())


def _converting(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a decorator of functions, whose arguments are converted first."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def converted(*args: Any, **options: Any) -> Any:
            return function(
                *map(convert, args), **{name: convert(value) for name, value in options.items()}
            )

        return converted

    return decorate


def _refusing(graph: Callable[..., Any]) -> Callable[..., Any]:
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
