"""`torch.cluster.memory`: what this process and its session hold on the workers, in bytes."""

from __future__ import annotations

import collections
import os
import pathlib
import warnings
from typing import Any

import gt
from gt import _gt
from gt._gt import torch_device
from gt.torch.cluster import refused
from gt.torch.cluster.devices import check_device

__all__ = [
    "empty_cache",
    "get_allocator_backend",
    "get_per_process_memory_fraction",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "list_gpu_processes",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_per_process_memory_fraction",
]

#: Linux's files with the limit of a container's memory.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")

#: What `set_per_process_memory_fraction` stores.
_fraction = 1.0

__getattr__ = refused.of("torch.cluster.memory")


def empty_cache() -> None:
    """Do nothing: workers free memory on their own."""


def memory_allocated(device: Any = None) -> int:
    """Return the size in bytes of all storages that this process holds."""
    check_device(device)
    return torch_device.allocated()


def memory_reserved(device: Any = None) -> int:
    """Return `memory_allocated()`: no memory is reserved beyond that of the storages."""
    check_device(device)
    return torch_device.allocated()


def max_memory_allocated(device: Any = None) -> int:
    """Return the peak of `memory_allocated` since `reset_peak_memory_stats`."""
    check_device(device)
    return torch_device.peak()


def max_memory_reserved(device: Any = None) -> int:
    """Return the peak of `memory_reserved` since `reset_peak_memory_stats`."""
    check_device(device)
    return torch_device.peak()


def memory_cached(device: Any = None) -> int:
    """Return `memory_reserved()`, of which it is the deprecated name."""
    check_device(device)
    _warn("memory_cached", "memory_reserved")
    return memory_reserved()


def max_memory_cached(device: Any = None) -> int:
    """Return `max_memory_reserved()`, of which it is the deprecated name."""
    check_device(device)
    _warn("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset `max_memory_allocated` to the current `memory_allocated`."""
    check_device(device)
    torch_device.forget_peak()


def reset_max_memory_allocated(device: Any = None) -> None:
    """Call `reset_peak_memory_stats`, of which it is the deprecated name."""
    check_device(device)
    _warn("reset_max_memory_allocated", "reset_peak_memory_stats")
    reset_peak_memory_stats()


def reset_max_memory_cached(device: Any = None) -> None:
    """Call `reset_peak_memory_stats`, of which it is the deprecated name."""
    check_device(device)
    _warn("reset_max_memory_cached", "reset_peak_memory_stats")
    reset_peak_memory_stats()


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Do nothing: `memory_stats` has no accumulated values."""
    check_device(device)


def memory_stats(device: Any = None) -> collections.OrderedDict[str, int]:
    """Return statistics of memory by PyTorch's names. Waits for the workers.

    `{allocated,reserved,active,requested}_bytes.all.{current,peak}` are those of the storages of
    this process; `inactive_split_bytes` and `num_alloc_retries` are 0, as there is no caching
    allocator. `num_ooms` is the number of operations whose failure for lack of memory still shows.
    `workers.NAME.{bytes,bytes_peak,tensors}` are those of the session on each worker.
    """
    check_device(device)
    nested = memory_stats_as_nested_dict()
    return collections.OrderedDict(sorted(_flat("", nested)))


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return `memory_stats` as nested dicts."""
    check_device(device)
    ours = {"current": memory_allocated(), "peak": max_memory_allocated()}
    names = ("allocated_bytes", "reserved_bytes", "active_bytes", "requested_bytes")
    failures = [of for of in gt.debug.failed() if "out of memory" in of.reason]
    return {
        **{name: {"all": dict(ours)} for name in names},
        "inactive_split_bytes": {"all": {"current": 0, "peak": 0}},
        "num_alloc_retries": 0,
        "num_ooms": len(failures),
        "workers": {name: of["memory"] for name, of in gt.debug.get_worker_stats().items()},
    }


def _flat(name: str, value: Any) -> list[tuple[str, int]]:
    if not isinstance(value, dict):
        return [(name, value)]
    return [
        pair for key, of in value.items() for pair in _flat(f"{name}.{key}" if name else key, of)
    ]


def get_allocator_backend() -> str:
    """Return "native", as PyTorch with its own allocator: the workers have GT's."""
    return "native"


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Store a fraction of the memory. It limits nothing, of which a warning says if it is below 1.

    Args:
        fraction: From 0 to 1.
        device: The device, which may be omitted.

    Raises:
        TypeError: The fraction is not a float.
        ValueError: It is below 0 or above 1.
    """
    global _fraction
    check_device(device)
    if not isinstance(fraction, float):
        raise TypeError(
            f"Invalid type for fraction argument, must be `float`, not {type(fraction).__name__}"
        )
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    if fraction < 1:
        warnings.warn(
            f"set_per_process_memory_fraction: {refused.QUOTA}, and not the fraction {fraction}",
            stacklevel=2,
        )
    _fraction = fraction


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the fraction that `set_per_process_memory_fraction` stores, by default 1."""
    check_device(device)
    return _fraction


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return a table of the memory of this process and on the workers. Waits for the workers.

    Args:
        device: The device, which may be omitted.
        abbreviated: Whether to omit the workers.
    """
    check_device(device)
    rows = [("GT cluster", "bytes", "peak", "tensors")]
    rows.append(("this process", f"{memory_allocated():,}", f"{max_memory_allocated():,}", "-"))
    for name, of in {} if abbreviated else gt.debug.get_worker_stats().items():
        held = of["memory"]
        rows.append((name, f"{held['bytes']:,}", f"{held['bytes_peak']:,}", f"{held['tensors']:,}"))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    lines = [
        row[0].ljust(widths[0])
        + "".join(f"  {cell.rjust(width)}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free and the total memory in bytes, if the workers use this host's memory.

    Raises:
        RuntimeError: The workers are those of a server, or on GPUs.
    """
    check_device(device)
    workers = gt.debug.get_worker_stats().values()
    is_here = gt.status().at.startswith("this process")
    if not is_here or any(worker["engine"] != "native" for worker in workers):
        raise RuntimeError(
            "mem_get_info: only workers in this process, on its CPUs, report the size of their "
            "memory\n  hint: gt.status() reports what all workers hold"
        )
    page, limit = os.sysconf("SC_PAGE_SIZE"), os.environ.get("GT_MEMORY")
    # Workers use nine tenths of the memory of the machine, or of its container.
    total = min([os.sysconf("SC_PHYS_PAGES") * page, *_limits_of_container()]) * 9 // 10
    if limit:
        total = min(total, _gt.parse_size(limit) * len(workers))
    held = sum(worker["memory"]["bytes"] for worker in workers)
    return max(0, min(os.sysconf("SC_AVPHYS_PAGES") * page, total - held)), total


def _limits_of_container() -> list[int]:
    files = map(pathlib.Path, _LIMITS)
    found = [file.read_text().strip() for file in files if file.exists()]
    return [int(text) for text in found if text.isdigit()]


def device_memory_used(device: Any = None) -> int:
    """Return the bytes that all sessions hold in the memory of all workers, as last reported."""
    check_device(device)
    return sum(worker["bytes"] or 0 for worker in gt.status().workers)


def list_gpu_processes(device: Any = None) -> str:
    """Return the table of `gt.status()`: the workers, and the sessions with their memory."""
    check_device(device)
    return str(gt.status())


def host_memory_stats() -> collections.OrderedDict[str, int]:
    """Return no statistics: the device pins no memory of the host."""
    return collections.OrderedDict()


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Return no statistics: the device pins no memory of the host."""
    return {}


def reset_accumulated_host_memory_stats() -> None:
    """Do nothing: the device pins no memory of the host."""


def reset_peak_host_memory_stats() -> None:
    """Do nothing: the device pins no memory of the host."""


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.cluster.{old}` is deprecated. Please use `torch.cluster.{new}` instead.",
        FutureWarning,
        stacklevel=3,
    )
