"""`DataParallel`, for programs written for several GPUs."""

from __future__ import annotations

from typing import Any

from gt.nn.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """A wrapper that only calls a module; in GT, signals configure how batches are sharded.

    It behaves as PyTorch's on a machine without GPUs: names in its state begin with `module.`.

    Args:
        module: the module to call.
        device_ids: accepted as in PyTorch; it has no effect.
        output_device: accepted as in PyTorch; it has no effect.
        dim: the axis of the batch; it is only stored.

    >>> gt.nn.DataParallel(gt.nn.Linear(2, 3))(gt.ones(1, 2)).shape
    (1, 3)
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ):
        super().__init__()
        self.add_module("module", module)
        self.device_ids: list[int] = []
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the module's result."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Any = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Return the module's result for the inputs, a tuple of arguments or one argument."""
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*arguments, **(module_kwargs or {}))
