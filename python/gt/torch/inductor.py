"""`torch.compile(model)` without a backend: graphs on the device use GT's backend.

PyTorch's default backend, Inductor, has no code generator for the device. All calls of
`torch.compile` share the class that calls Inductor, with the mode and the options of the call. The
choice is made there, for each graph, when its devices are known.
`torch.compiler.set_default_backend` would instead replace Inductor for programs of all devices,
with the time at which they report a wrong mode or option.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch


def register() -> None:
    """Choose GT's backend instead of Inductor for graphs with tensors on the device."""
    wrapper = getattr(torch, "_TorchCompileInductorWrapper", None)
    if wrapper is None:
        # A later release may rename the class; `backend="gt"` works without this module.
        return
    wrapper.__call__ = _by_device(wrapper.__call__)


def _by_device(inductor: Any) -> Any:
    """Wrap the call of Inductor for a graph and its inputs."""

    @functools.wraps(inductor)
    def compile_graph(self: Any, graph: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if any(_is_on_cluster(value) for value in (*inputs, *_values(graph))):
            from gt.torch.compiled import backend

            return backend(graph, inputs)
        return inductor(self, graph, inputs, *args, **kwargs)

    return compile_graph


def _values(graph: Any) -> Iterator[Any]:
    """Yield the traced values of a graph and of the graphs inside it."""
    for module in graph.modules():
        if isinstance(module, torch.fx.GraphModule):
            for node in module.graph.nodes:
                value = node.meta.get("example_value", node.meta.get("val"))
                yield from value if isinstance(value, list | tuple) else (value,)


def _is_on_cluster(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "cluster"
