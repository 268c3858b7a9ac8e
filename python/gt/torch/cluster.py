"""The module `torch.cluster`: what `torch.cuda` is for a GPU.

There is one device, however many workers a session has: which worker computes what is the
dispatcher's business. So streams and events have nothing to order, and `synchronize` waits for all.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import torch

import gt
from gt._gt import torch_device

#: What checkpoints of activations look for before they keep the state of random numbers.
_initialized = True


def is_available() -> bool:
    """Whether the device can be used: always."""
    return True


def is_initialized() -> bool:
    """Whether the device is in use already."""
    return True


def init() -> None:
    """Do nothing: a session starts with the first tensor."""


def _lazy_init() -> None:
    """Do nothing: a session starts with the first tensor."""


def _is_in_bad_fork() -> bool:
    """Whether this process was forked from one that uses the device: GT's sessions allow that."""
    return False


def device_count() -> int:
    """Give the number of devices: 1."""
    return 1


def current_device() -> int:
    """Give the number of the current device: 0."""
    return 0


def set_device(device: Any) -> None:
    """Check that a device is the only one there is."""
    index = device if isinstance(device, int) else torch.device(device).index
    if index not in (None, 0, -1):
        raise RuntimeError(
            f"torch.cluster has one device, cluster:0, not {device}\n"
            "  hint: gt.signal.context says which workers a tensor lies on"
        )


def get_device_name(device: Any = None) -> str:
    """Name the device."""
    return "GT cluster"


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Give the version of what the device can do, as CUDA's compute capability."""
    return (0, 0)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 can be computed with."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Give the dtypes that `torch.autocast("cluster")` takes."""
    return [torch.bfloat16, torch.float16]


def synchronize(device: Any = None) -> None:
    """Wait until all that was issued is computed."""
    gt.synchronize()


def empty_cache() -> None:
    """Do nothing: workers give memory back by themselves."""


def ipc_collect() -> None:
    """Do nothing: storages are not shared between processes."""


def memory_allocated(device: Any = None) -> int:
    """Give the bytes of all storages that this process holds."""
    return torch_device.allocated()


memory_reserved = memory_allocated


def max_memory_allocated(device: Any = None) -> int:
    """Give the most bytes that this process held at a time since `reset_peak_memory_stats`."""
    return torch_device.peak()


max_memory_reserved = max_memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Have `max_memory_allocated` begin anew from what is held."""
    torch_device.forget_peak()


def manual_seed(seed: int) -> None:
    """Start the session's random numbers anew."""
    gt.manual_seed(int(seed) & (2**63 - 1))


manual_seed_all = manual_seed


def seed() -> int:
    """Start the session's random numbers at a number nobody knows, and give it."""
    return gt.seed()


seed_all = seed


def initial_seed() -> int:
    """Give the seed of the session's random numbers."""
    return gt.initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    """Give the state of the session's random numbers."""
    return torch.from_numpy(gt.get_rng_state().numpy().copy())


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Set the state of the session's random numbers."""
    gt.set_rng_state(gt.from_numpy(state.cpu().numpy()))


class Stream:
    """An order of instructions. A session has one, so all streams are the same."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device = torch.device("cluster", 0)
        self.stream_id = 0

    def synchronize(self) -> None:
        """Wait until all that was issued is computed."""
        synchronize()

    def query(self) -> bool:
        """Whether all that was issued is computed; waits for it."""
        synchronize()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: all streams are in order already."""

    def wait_event(self, event: Any) -> None:
        """Do nothing: all streams are in order already."""

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event."""
        event = event or Event()
        event.record(self)
        return event

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exception: Any) -> None:
        return None


class Event:
    """A point in the stream. `elapsed_time` measures between two, at which it waits."""

    def __init__(self, enable_timing: bool = False, **options: Any) -> None:
        self._timed = enable_timing
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Note this point; one with timing waits for what was issued before."""
        if self._timed:
            synchronize()
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """Wait until all that was issued is computed."""
        synchronize()

    def wait(self, stream: Any = None) -> None:
        """Do nothing: what follows is in order already."""

    def query(self) -> bool:
        """Whether all that was issued is computed; waits for it."""
        synchronize()
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Give the milliseconds from this event to another.

        Raises:
            ValueError: one of them was not recorded, or was made without `enable_timing`.
        """
        if not (self._timed and end_event._timed):
            raise ValueError("elapsed_time: both events must be made with enable_timing=True")
        if self._time is None or end_event._time is None:
            raise ValueError("elapsed_time: both events must be recorded first")
        return (end_event._time - self._time) * 1000


def current_stream(device: Any = None) -> Stream:
    """Give the stream."""
    return Stream()


default_stream = current_stream


def set_stream(stream: Any) -> None:
    """Do nothing: there is one stream."""


def stream(stream: Any) -> contextlib.AbstractContextManager:
    """Use a stream in a `with` block."""
    return contextlib.nullcontext(stream)


class device:
    """Use a device in a `with` block: there is one."""

    def __init__(self, device: Any) -> None:
        set_device(device)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: Any) -> None:
        return None
