"""What programs wrap a model in for several GPUs."""

from __future__ import annotations

from typing import Any

from gt.nn.module import Module


class DataParallel(Module):
    """Calls a module: signals say over which workers a batch is cut, not this.

    It does what PyTorch's does on a machine without GPUs, so names of the state begin with
    `module.`.

    Args:
        module: what is called.
        device_ids: accepted as PyTorch's.
        output_device: accepted as PyTorch's.
        dim: accepted as PyTorch's: the axis of the batch.

    >>> gt.nn.DataParallel(gt.nn.Linear(2, 3))(gt.ones(1, 2)).shape
    (1, 3)
    """

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ):
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []
        self.dim = dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Give the module's result."""
        return self.module(*inputs, **kwargs)
