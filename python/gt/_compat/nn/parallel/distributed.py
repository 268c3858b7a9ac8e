"""`DistributedDataParallel`, for programs written for several processes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn

from gt import distributed
from gt.nn.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A wrapper that only calls a module: one process drives all workers, and is the whole group.

    It behaves as PyTorch's in a group of one process: names in its state begin with `module.`.
    Signals configure how batches are sharded over workers.

    Args:
        module: the module to call, with a parameter that requires a gradient.
        device_ids: accepted as in PyTorch; it has no effect.
        output_device: accepted as in PyTorch; it has no effect.
        dim: the axis of the batch; it is only stored.
        broadcast_buffers: accepted as in PyTorch; it has no effect.
        process_group: the group, which has one process.
        **options: PyTorch's further options, such as `find_unused_parameters`; they have no effect.

    Raises:
        ValueError: there is no process group.
        RuntimeError: no parameter requires a gradient.
    """

    _OPTIONS = frozenset(
        """init_sync bucket_cap_mb find_unused_parameters check_reduction gradient_as_bucket_view
        static_graph delay_all_reduce_named_params param_to_hook_all_reduce device_mesh
        skip_all_reduce_unused_params bucket_cap_mb_list""".split()
    )

    def __init__(
        self,
        module: Module,
        device_ids: Any = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        process_group: Any = None,
        **options: Any,
    ):
        super().__init__()
        if unknown := sorted(options.keys() - self._OPTIONS - {"mixed_precision"}):
            raise TypeError(f"DistributedDataParallel: there is no option '{unknown[0]}'")
        if options.get("mixed_precision") is not None:
            raise NotImplementedError(
                "DistributedDataParallel: mixed_precision would change the numbers\n"
                "  hint: with gt.autocast('cuda'): around the forward"
            )
        distributed.get_rank(process_group)
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        self.module = module
        self.device_ids: list[int] | None = None
        self.output_device: Any = None
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.process_group = process_group or distributed.group.WORLD
        self.require_backward_grad_sync = True
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Return the module's result."""
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Return a block in which gradients are not reduced over processes: there is only one."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(self, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Return a block in which processes may have unequal numbers of batches."""
        yield

    def register_comm_hook(self, state: object, hook: Any) -> NoReturn:
        """Raise NotImplementedError: no gradients are sent that a hook could compress."""
        raise NotImplementedError(
            "register_comm_hook: gradients are not sent between processes here\n"
            "  hint: leave it out; GT reduces gradients where a signal shards the batch"
        )
