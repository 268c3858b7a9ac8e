"""The module `torch.cluster`, the counterpart of `torch.cuda`.

There is one device, however many workers a session has: the dispatcher decides which worker
computes what. Streams and events impose no order, and `synchronize` waits for all issued
operations.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import torch

import gt
from gt._gt import torch_device

#: Read by `torch.utils.checkpoint` to decide whether to save the state of random numbers.
_initialized = True


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
    index = device if isinstance(device, int) else torch.device(device).index
    if index not in (None, 0, -1):
        raise RuntimeError(
            f"torch.cluster has one device, cluster:0, not {device}\n"
            "  hint: gt.signal.context chooses the workers of a tensor"
        )


def get_device_name(device: Any = None) -> str:
    """Return the name of the device."""
    return "GT cluster"


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return (0, 0), in place of CUDA's compute capability."""
    return (0, 0)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return whether the device supports bfloat16, which is always the case."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """Return the dtypes that `torch.autocast("cluster")` accepts."""
    return [torch.bfloat16, torch.float16]


def synchronize(device: Any = None) -> None:
    """Wait until all issued operations are computed."""
    gt.synchronize()


def empty_cache() -> None:
    """Do nothing: workers free memory on their own."""


def ipc_collect() -> None:
    """Do nothing: storages are not shared between processes."""


def memory_allocated(device: Any = None) -> int:
    """Return the size in bytes of all storages that this process holds."""
    return torch_device.allocated()


memory_reserved = memory_allocated


def max_memory_allocated(device: Any = None) -> int:
    """Return the peak of `memory_allocated` since `reset_peak_memory_stats`."""
    return torch_device.peak()


max_memory_reserved = max_memory_allocated


def reset_peak_memory_stats(device: Any = None) -> None:
    """Reset `max_memory_allocated` to the current `memory_allocated`."""
    torch_device.forget_peak()


def manual_seed(seed: int) -> None:
    """Set the seed of the session's random numbers."""
    gt.manual_seed(int(seed) & (2**63 - 1))


manual_seed_all = manual_seed


def seed() -> int:
    """Set the seed of the session's random numbers to a random number, and return it."""
    return gt.seed()


seed_all = seed


def initial_seed() -> int:
    """Return the seed of the session's random numbers."""
    return gt.initial_seed()


def get_rng_state(device: Any = None) -> torch.Tensor:
    """Return the state of the session's random numbers."""
    return torch.from_numpy(gt.get_rng_state().numpy().copy())


def set_rng_state(state: torch.Tensor, device: Any = None) -> None:
    """Set the state of the session's random numbers."""
    gt.set_rng_state(gt.from_numpy(state.cpu().numpy()))


class Stream:
    """The order of instructions. A session has a single order, so all streams are equivalent."""

    def __init__(self, device: Any = None, priority: int = 0, **options: Any) -> None:
        self.device = torch.device("cluster", 0)
        self.stream_id = 0

    def synchronize(self) -> None:
        """Wait until all issued operations are computed."""
        synchronize()

    def query(self) -> bool:
        """Wait until all issued operations are computed, and return True."""
        synchronize()
        return True

    def wait_stream(self, stream: Any) -> None:
        """Do nothing: all streams share one order."""

    def wait_event(self, event: Any) -> None:
        """Do nothing: all streams share one order."""

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
    """A point in the stream. Recording an event with timing waits for all issued operations."""

    def __init__(self, enable_timing: bool = False, **options: Any) -> None:
        self._timed = enable_timing
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Record the event; with timing, wait for all issued operations first."""
        if self._timed:
            synchronize()
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """Wait until all issued operations are computed."""
        synchronize()

    def wait(self, stream: Any = None) -> None:
        """Do nothing: all streams share one order."""

    def query(self) -> bool:
        """Wait until all issued operations are computed, and return True."""
        synchronize()
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds from this event to another.

        Raises:
            ValueError: One of them was not recorded, or was created without `enable_timing`.
        """
        if not (self._timed and end_event._timed):
            raise ValueError("elapsed_time: both events must be made with enable_timing=True")
        if self._time is None or end_event._time is None:
            raise ValueError("elapsed_time: both events must be recorded first")
        return (end_event._time - self._time) * 1000


def current_stream(device: Any = None) -> Stream:
    """Return the stream."""
    return Stream()


default_stream = current_stream


def set_stream(stream: Any) -> None:
    """Do nothing: there is one stream."""


def stream(stream: Any) -> contextlib.AbstractContextManager[Any]:
    """Return a context manager that does nothing: there is one stream."""
    return contextlib.nullcontext(stream)


class device:
    """A context manager for the device; only cluster:0 is valid."""

    def __init__(self, device: Any) -> None:
        set_device(device)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: Any) -> None:
        return None
