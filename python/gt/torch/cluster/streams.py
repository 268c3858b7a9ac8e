"""`torch.cluster.streams`: streams and events. A session has a single order of instructions."""

from __future__ import annotations

import time
from typing import Any

import torch

import gt
from gt.torch import extension
from gt.torch.cluster import refused

__all__ = ["Event", "Stream", "StreamContext"]

__getattr__ = refused.of("torch.cluster.streams")


_HostEvent: Any = torch.Event


class Stream(torch.Stream):
    """The order of instructions. A session has a single order, so all streams are equivalent."""

    priority = 0

    def __new__(cls, device: Any = None, priority: int = 0, **options: Any) -> Any:
        """Create a stream; arguments are accepted as for other devices."""
        return super().__new__(cls, device="cluster")

    def __init__(self, *options: Any, **named: Any) -> None:
        pass

    def synchronize(self) -> None:
        """Wait until all issued operations are computed."""
        gt.synchronize()

    def query(self) -> bool:
        """Wait until all issued operations are computed, and return True."""
        gt.synchronize()
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


class StreamContext:
    """A context manager without effect: there is one stream.

    Args:
        stream: A stream, or None.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> Any:
        return self.stream

    def __exit__(self, *exception: Any) -> None:
        return None


class Event(_HostEvent):
    """A point in the stream. Recording an event with timing waits for all issued operations."""

    def __new__(cls, enable_timing: bool = False, *options: Any, **named: Any) -> Any:
        """Create an event; further arguments are accepted as for other devices."""
        return super().__new__(cls, device="cluster", enable_timing=enable_timing)

    def __init__(self, enable_timing: bool = False, *options: Any, **named: Any) -> None:
        self._timed = enable_timing
        self._time: float | None = None

    def record(self, stream: Any = None) -> None:
        """Record the event; with timing, wait for all issued operations first."""
        if self._timed:
            gt.synchronize()
        self._time = time.perf_counter()

    def synchronize(self) -> None:
        """Wait until all issued operations are computed."""
        gt.synchronize()

    def wait(self, stream: Any = None) -> None:
        """Do nothing: all streams share one order."""

    def query(self) -> bool:
        """Wait until all issued operations are computed, and return True."""
        gt.synchronize()
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


class _AnyEvent(type):
    """The type of `torch.Event`, of which the events of all devices are instances."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, _HostEvent)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _HostEvent)

    def __call__(cls, device: Any = None, *, enable_timing: bool = False, **options: Any) -> Any:
        """Create an event of a device, by default the accelerator."""
        place = torch.accelerator.current_accelerator() if device is None else torch.device(device)
        is_own = enable_timing or not extension.is_connected()
        if is_own and place is not None and place.type == "cluster":
            return Event(enable_timing, **options)
        return _HostEvent(device, enable_timing=enable_timing, **options)


class _EventOfDevice(_HostEvent, metaclass=_AnyEvent):
    """PyTorch's event, whose C++ class needs C++ code of the device, and cannot measure time."""


def register() -> None:
    """Replace `torch.Event`."""
    _EventOfDevice.__name__ = _EventOfDevice.__qualname__ = "Event"
    _EventOfDevice.__module__ = "torch"
    torch.Event = _EventOfDevice
