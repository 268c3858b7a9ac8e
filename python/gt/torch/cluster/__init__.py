"""The module `torch.cluster`, the counterpart of `torch.cuda`.

There is one device, however many workers a session has: the dispatcher decides which worker
computes what. Streams and events impose no order, and `synchronize` waits for all issued
operations. `refused` lists the names of `torch.cuda` that the device does not have.
"""

from __future__ import annotations

import sys
from typing import Any

import torch

import gt
from gt.torch import host
from gt.torch.cluster import amp, comm, graphs, memory, nvtx, random, refused, streams, tensors
from gt.torch.cluster.devices import check_device
from gt.torch.cluster.graphs import is_current_stream_capturing, make_graphed_callables
from gt.torch.cluster.memory import (
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from gt.torch.cluster.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from gt.torch.cluster.streams import Event, Stream, StreamContext

#: Read by `torch.utils.checkpoint` to decide whether to save the state of random numbers.
_initialized = True

#: The errors of workers, whatever their reason.
AcceleratorError = gt.WorkerError
#: The class of errors for lack of a worker's memory.
OutOfMemoryError = torch.OutOfMemoryError

#: Whether the device has float16, and MAGMA, a library for CUDA.
has_half, has_magma = True, False

#: The generators of the devices: of the session's random numbers.
default_generators = (host.DEFAULT,)

globals().update(tensors.TENSORS)
globals().update(tensors.STORAGES)

__all__ = [
    *tensors.TENSORS,
    *tensors.STORAGES,
    "AcceleratorError",
    "OutOfMemoryError",
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "can_device_access_peer",
    "comm",
    "current_device",
    "current_stream",
    "default_generators",
    "default_stream",
    "device",
    "device_count",
    "device_memory_used",
    "device_of",
    "empty_cache",
    "get_allocator_backend",
    "get_amp_supported_dtype",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_gencode_flags",
    "get_per_process_memory_fraction",
    "get_rng_state",
    "get_rng_state_all",
    "get_sync_debug_mode",
    "graphs",
    "has_half",
    "has_magma",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "init",
    "initial_seed",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_current_stream_capturing",
    "is_initialized",
    "is_tf32_supported",
    "list_gpu_processes",
    "make_graphed_callables",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_cached",
    "max_memory_reserved",
    "mem_get_info",
    "memory",
    "memory_allocated",
    "memory_cached",
    "memory_reserved",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "nvtx",
    "random",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "seed",
    "seed_all",
    "set_device",
    "set_per_process_memory_fraction",
    "set_rng_state",
    "set_rng_state_all",
    "set_stream",
    "set_sync_debug_mode",
    "stream",
    "streams",
    "synchronize",
]

__getattr__ = refused.of("torch.cluster")


def register() -> None:
    """Make it the module of the device, and let its parts be imported by their names."""
    torch._register_device_module("cluster", sys.modules[__name__])
    for part in (amp, comm, graphs, memory, nvtx, random, streams):
        name = part.__name__.rpartition(".")[2]
        sys.modules[f"torch.cluster.{name}"] = part
    streams.register()
    torch.set_default_tensor_type = tensors.setting_type(torch.set_default_tensor_type)


def is_available() -> bool:
    """Return whether the device can be used, which is always the case."""
    return True


def is_initialized() -> bool:
    """Return whether the device is initialized, which is always the case."""
    return True


def init() -> None:
    """Do nothing: a session starts with the first tensor."""


def _lazy_init() -> None:
    """Do nothing: a session starts with the first tensor."""


def _is_in_bad_fork() -> bool:
    """Return False: GT's sessions work in forked processes."""
    return False


def device_count() -> int:
    """Return the number of devices, 1."""
    return 1


def current_device() -> int:
    """Return the index of the current device, 0."""
    return 0


def set_device(device: Any) -> None:
    """Raise `RuntimeError` unless `device` is cluster:0, the only device."""
    check_device(device)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Return False: there is one device, which has no peer."""
    set_device(device)
    set_device(peer_device)
    return False


def get_device_name(device: Any = None) -> str:
    """Return the name of the device."""
    check_device(device)
    return "GT cluster"


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return (0, 0), in place of CUDA's compute capability."""
    check_device(device)
    return (0, 0)


class _DeviceProperties:
    """The properties of the device. `workers` is the number of workers."""

    name = "GT cluster"
    major = minor = 0

    @property
    def workers(self) -> int:
        return len(gt.status().workers)

    @property
    def total_memory(self) -> int:
        """The size of the memory in bytes, as in `mem_get_info`."""
        return mem_get_info()[1]

    def __repr__(self) -> str:
        return f"_DeviceProperties(name={self.name!r}, workers={self.workers})"


def get_device_properties(device: Any = None) -> _DeviceProperties:
    """Return the properties of the device: `name`, `total_memory`, `workers`."""
    check_device(device)
    return _DeviceProperties()


def get_arch_list() -> list[str]:
    """Return no GPU architectures: workers' engines are built for theirs."""
    return []


def get_gencode_flags() -> str:
    """Return no flags of a CUDA compiler."""
    return ""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the device supports bfloat16, which is always the case."""
    return True


def is_tf32_supported() -> bool:
    """Return False: products of float32 tensors are computed in float32."""
    return False


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the dtypes that `torch.autocast("cluster")` accepts."""
    return [torch.bfloat16, torch.float16]


def synchronize(device: Any = None) -> None:
    """Wait until all issued operations are computed."""
    check_device(device)
    gt.synchronize()


def get_sync_debug_mode() -> int:
    """Return 0: operations that wait for a value are not reported."""
    return 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Accept the mode "default".

    Raises:
        RuntimeError: The mode is "warn" or "error", which the device does not have.
    """
    if debug_mode not in (0, "default"):
        raise RuntimeError(
            f"set_sync_debug_mode: the device has only the mode 'default', not {debug_mode!r}\n"
            "  hint: `gt trace` shows when the program waits for a value"
        )


def ipc_collect() -> None:
    """Do nothing: storages are not shared between processes."""


def current_stream(device: Any = None) -> Stream:
    """Return the stream."""
    check_device(device)
    return Stream()


default_stream = current_stream


def set_stream(stream: Any) -> None:
    """Do nothing: there is one stream."""


def stream(stream: Any) -> StreamContext:
    """Return a context manager without effect: there is one stream."""
    return StreamContext(stream)


class device:
    """A context manager for the device; only cluster:0 is valid."""

    def __init__(self, device: Any) -> None:
        set_device(device)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: Any) -> None:
        return None


class device_of(device):
    """A context manager for the device of a tensor or storage.

    Args:
        obj: A tensor or storage, possibly of another device.
    """

    def __init__(self, obj: Any) -> None:
        super().__init__("cluster")
