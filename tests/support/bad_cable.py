"""A cable between two network namespaces that delays packets and loses some of them.

Each end is a TUN device. A thread passes packets from one to the other: kernels without `netem`
have nothing else for that.
"""

from __future__ import annotations

import fcntl
import heapq
import os
import select
import struct
import threading
import time

#: Of Linux's if_tun.h: `TUNSETIFF`, and a device of IP packets without a header of its own.
SET_INTERFACE = 0x400454CA
FLAGS = 0x0001 | 0x1000

#: The largest packet.
LARGEST = 1 << 16

DEVICE = "/dev/net/tun"


def missing() -> str | None:
    """Return why this system cannot have such cables, or None."""
    try:
        os.close(open_device(f"gtt{os.getpid() % 1000000}"))
    except OSError as error:
        return f"no TUN device can be made: {error}"
    return None


def open_device(name: str) -> int:
    """Make a TUN device, which lasts until its descriptor is closed; return the descriptor."""
    descriptor = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.ioctl(descriptor, SET_INTERFACE, struct.pack("16sH22x", name.encode(), FLAGS))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class BadCable:
    """A relay between two TUN devices.

    Args:
        names: The names of the devices. The caller puts them into their namespaces.
        delay: The seconds that each packet takes.
        lose_each: The number of packets of which the last one is lost.
    """

    def __init__(self, names: tuple[str, str], delay: float, lose_each: int):
        self.names, self.delay, self.lose_each = names, delay, lose_each
        #: The packets that were passed on, and those that were lost.
        self.passed = self.lost = 0
        self._ends = tuple(open_device(name) for name in names)
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._relay, daemon=True)
        self._thread.start()

    def _relay(self) -> None:
        first, second = self._ends
        other = {first: second, second: first}
        flying: list[tuple[float, int, int, bytes]] = []
        taken = 0
        while not self._is_ending.is_set():
            now = time.monotonic()
            while flying and flying[0][0] <= now:
                _, _, to, packet = heapq.heappop(flying)
                self._write(to, packet)
            wait = min(0.1, flying[0][0] - now) if flying else 0.1
            for end in select.select(self._ends, (), (), wait)[0]:
                try:
                    packet = os.read(end, LARGEST)
                except OSError:
                    # The device is not up yet, or its namespace has ended.
                    time.sleep(0.01)
                    continue
                taken += 1
                if taken % self.lose_each == 0:
                    self.lost += 1
                    continue
                due = time.monotonic() + self.delay
                heapq.heappush(flying, (due, taken, other[end], packet))

    def _write(self, to: int, packet: bytes) -> None:
        try:
            os.write(to, packet)
            self.passed += 1
        except OSError:
            self.lost += 1

    def close(self) -> None:
        """End the relay, and with it the devices."""
        self._is_ending.set()
        self._thread.join(10)
        for end in self._ends:
            os.close(end)
