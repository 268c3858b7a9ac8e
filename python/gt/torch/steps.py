"""Atomic steps of PyTorch's optimizers: all changes of a step take effect, or none.

PyTorch calls hooks before and after each optimizer step. The hook after the step commits the new
values of the tensors that the step changed. If a gradient failed, parameters and optimizer states
keep their old values. This does not wait for any computation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from gt._gt import torch_device

#: The initial values of state entries that do not start at zero.
_STARTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "step_size": lambda group: group["lr"],
    "eta": lambda group: group["lr"],
    "mu": lambda group: 1.0,
    "mu_product": lambda group: 1.0,
}

#: Optimizer -> its current step.
_begun: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def register() -> None:
    """Register both hooks for all optimizers, and roll back steps that raise."""
    register_optimizer_step_pre_hook(_begin)
    register_optimizer_step_post_hook(_end)
    optimizer = torch.optim.Optimizer
    optimizer.profile_hook_step = staticmethod(_undone_if_raised(optimizer.profile_hook_step))


def _undone_if_raised(profiled: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap PyTorch's wrapper of steps, which calls no hook if a step raises, to roll it back."""

    @functools.wraps(profiled)
    def wrap(step: Callable[..., Any]) -> Callable[..., Any]:
        called = profiled(step)

        @functools.wraps(called)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return called(self, *args, **kwargs)
            except BaseException:
                begun = _begun.pop(self, None)
                if begun is not None:
                    begun.roll_back(list(_addresses(self)))
                raise

        return wrapped

    return wrap


def together(*tensors: torch.Tensor | None) -> Callable[[], None]:
    """Begin a step that may change these tensors; return the function that commits it."""
    kept = [tensor for tensor in tensors if tensor is not None]
    step = torch_device.StorageStep([tensor.data_ptr() for tensor in kept])
    return lambda: step.commit([(tensor.data_ptr(), 0.0) for tensor in kept])


def _begin(optimizer: Any, args: Any, kwargs: Any) -> None:
    # Discard a step that an exception interrupted.
    _begun.pop(optimizer, None)
    addresses = [address for address, _ in _addresses(optimizer)]
    if addresses:
        _begun[optimizer] = torch_device.StorageStep(addresses)


def _end(optimizer: Any, args: Any, kwargs: Any) -> None:
    step = _begun.pop(optimizer, None)
    if step is not None:
        step.commit(list(_addresses(optimizer)))


def _addresses(optimizer: Any) -> Iterator[tuple[int, float]]:
    """Yield the address of each tensor that a step may change, and its initial value."""
    states = getattr(optimizer, "state", {})
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if not isinstance(parameter, torch.Tensor) or parameter.device.type != "cluster":
                continue
            yield parameter.data_ptr(), 0.0
            own = states.get(parameter)
            if not isinstance(own, dict):
                continue
            for name, value in own.items():
                if isinstance(value, torch.Tensor) and value.device.type == "cluster":
                    start = _STARTS.get(name)
                    yield value.data_ptr(), 0.0 if start is None else float(start(group))
