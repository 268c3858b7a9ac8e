"""Transfer of values between processes, over the socket of a `multiprocessing.Pipe`.

Large arrays do not go through the socket: the sender writes them to anonymous shared memory and
sends its file descriptor. Such memory has no name, so a killed process leaves nothing behind.
Messages in the socket are small, so a sender does not block on its reader.
"""

from __future__ import annotations

import mmap
import os
import pickle
import socket
from multiprocessing.connection import Connection
from typing import Any

#: The size in bytes from which a value is sent through shared memory.
_LARGE = 32 << 10
#: The alignment in bytes of the parts of a value in shared memory.
_ALIGNMENT = 64
_IN_SOCKET, _IN_MEMORY = b"s", b"m"
#: Whether the system supports anonymous shared memory and sending its descriptor.
_HAS_MEMORY = hasattr(os, "memfd_create") and hasattr(socket, "send_fds")


def send(connection: Connection, value: Any) -> None:
    """Send a value that can be pickled.

    Raises:
        OSError: the other process is gone.
    """
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(data), *(buffer.raw() for buffer in buffers)]
    if sum(part.nbytes for part in parts) < _LARGE or not _HAS_MEMORY:
        whole = pickle.dumps(value, protocol=5) if buffers else data
        connection.send_bytes(_IN_SOCKET + whole)
        return
    descriptor = os.memfd_create("gt-data")
    try:
        places = _write(descriptor, parts)
        connection.send_bytes(_IN_MEMORY + pickle.dumps(places))
        with socket.socket(fileno=os.dup(connection.fileno())) as beside:
            socket.send_fds(beside, [b"."], [descriptor])
    finally:
        os.close(descriptor)


def receive(connection: Connection) -> Any:
    """Wait for a value; shared memory is freed when the last array in it is freed.

    Raises:
        EOFError, OSError: the other process is gone.
    """
    message = connection.recv_bytes()
    if message[:1] == _IN_SOCKET:
        return pickle.loads(memoryview(message)[1:])
    places = pickle.loads(memoryview(message)[1:])
    with socket.socket(fileno=os.dup(connection.fileno())) as beside:
        data, descriptors, _, _ = socket.recv_fds(beside, 1, 1)
    if not data or not descriptors:
        raise EOFError
    try:
        memory = memoryview(mmap.mmap(descriptors[0], places[-1][1]))
    finally:
        os.close(descriptors[0])
    parts = [memory[start:end] for start, end in places]
    return pickle.loads(parts[0], buffers=parts[1:])


def _write(descriptor: int, parts: list[memoryview]) -> list[tuple[int, int]]:
    """Write parts one after the other; return the start and end of each."""
    places, end = [], 0
    for part in parts:
        start = -(-end // _ALIGNMENT) * _ALIGNMENT
        end = start + part.nbytes
        places.append((start, end))
        written = 0
        while written < part.nbytes:
            written += os.pwrite(descriptor, part[written:], start + written)
    # If the last part is empty, its aligned start is past the bytes written.
    os.ftruncate(descriptor, end)
    return places
