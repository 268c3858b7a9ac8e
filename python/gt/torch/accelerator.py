"""`torch.accelerator` for the device, where PyTorch asks C++ code of the device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from gt.torch import cluster, dtypes


def _capability(device: Any = None) -> dict[str, Any]:
    """Return the dtypes that the device supports."""
    return {"supported_dtypes": set(dtypes.BY_TORCH)}


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "current_stream": cluster.current_stream,
    "empty_cache": cluster.empty_cache,
    "get_device_capability": _capability,
    "get_memory_info": cluster.mem_get_info,
    "max_memory_allocated": cluster.max_memory_allocated,
    "max_memory_reserved": cluster.max_memory_reserved,
    "memory_allocated": cluster.memory_allocated,
    "memory_reserved": cluster.memory_reserved,
    "memory_stats": cluster.memory_stats,
    "reset_accumulated_memory_stats": cluster.reset_accumulated_memory_stats,
    "reset_peak_memory_stats": cluster.reset_peak_memory_stats,
    "synchronize": cluster.synchronize,
}


_RANDOM: dict[str, Callable[..., Any]] = {
    "get_rng_state": cluster.get_rng_state,
    "get_rng_state_all": cluster.get_rng_state_all,
    "initial_seed": lambda device=None: cluster.initial_seed(),
}


def register() -> None:
    """Replace the functions; those that the release does not have are not added."""
    accelerator = torch.accelerator
    for module, functions in (
        (accelerator, _FUNCTIONS),
        (getattr(accelerator, "memory", None), _FUNCTIONS),
        (getattr(accelerator, "random", None), _RANDOM),
    ):
        for name, function in functions.items():
            if hasattr(module, name):
                setattr(module, name, _on_cluster(function, getattr(module, name)))


def _on_cluster(function: Callable[..., Any], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `function` if the cluster is the accelerator."""

    @functools.wraps(otherwise)
    def call(*device: Any) -> Any:
        current = torch.accelerator.current_accelerator()
        if current is None or current.type != "cluster":
            return otherwise(*device)
        if device != () and device[0] is not None:
            cluster.set_device(device[0])
        return function(*device)

    return call
