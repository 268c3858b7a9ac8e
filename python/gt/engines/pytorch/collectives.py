"""Collectives between PyTorch engines by torch.distributed, with NCCL or Gloo.

Process groups are created directly, without torch.distributed's global state; members rendezvous at
a TCP store in the process of rank 0. Neither the store nor the backends encrypt or authenticate, so
they listen on a single address: that of the loopback interface unless the user names another.
"""

import fcntl
import ipaddress
import os
import re
import socket
import struct
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as distributed

from gt.engines.collectives import Collectives, Group, Settings
from gt.engines.engine import Meta
from gt.engines.pytorch.values import DTYPES

#: The ioctl request for an interface's address, on macOS and on Linux.
_SIOCGIFADDR = 0xC020_6921 if sys.platform == "darwin" else 0x8915
_EXACT = frozenset({"int32", "int64", "float32", "float64"})
_BYTES = torch.uint8


def address_of(interface: str | None) -> str:
    """Return the IPv4 address of a network interface, or the loopback address for None."""
    if interface is None:
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("256s", interface.encode()[:15])
        try:
            answer = fcntl.ioctl(probe, _SIOCGIFADDR, request)
        except OSError:
            names = ", ".join(name for _, name in socket.if_nameindex())
            raise ValueError(
                f"GT_COLLECTIVES_INTERFACE is '{interface}', which has no IPv4 address here; "
                f"expected one of {names}"
            ) from None
    return socket.inet_ntoa(answer[20:24])


class TorchCollectives(Collectives):
    """Collectives between engines whose tensors are on the same kind of device."""

    def __init__(self, device: torch.device, settings: Settings):
        self._device = device
        self._backend = "nccl" if device.type == "cuda" else "gloo"
        self._timeout = timedelta(seconds=settings.timeout)
        self._address = address_of(settings.interface)
        self.kind = f"{self._backend}/{torch.__version__}"
        self.local = ipaddress.ip_address(self._address).is_loopback
        self.adds = _EXACT
        if self._backend == "nccl":
            self.adds |= {"float16", "bfloat16"}
            # NCCL allows one process per GPU, and reads its network interface from the environment.
            # Older versions of PyTorch have no UUID: GPUs with the same index count as one.
            self.device = str(getattr(torch.cuda.get_device_properties(device), "uuid", device))
            os.environ.setdefault("NCCL_SOCKET_IFNAME", f"={settings.interface or 'lo'}")
        self._own = self._listen()
        self.store = f"{self._address}:{self._own.port}"
        self._groups: dict[tuple[int, ...], tuple[int, Processes]] = {}

    def _listen(self) -> distributed.TCPStore:
        # Without a listening socket of ours the store would listen on all addresses.
        listener = socket.create_server((self._address, 0), backlog=512)
        port = listener.getsockname()[1]
        return distributed.TCPStore(
            self._address,
            port,
            is_master=True,
            wait_for_workers=False,
            timeout=self._timeout,
            master_listen_fd=listener.detach(),
        )

    def join(
        self,
        group: Group,
        way: str,
        root: int | None,
        gives: list[tuple[int, torch.Tensor]],
        gets: list[tuple[int, Meta]],
    ) -> list[torch.Tensor]:
        """Carry out a collective; the first one of a group creates its process group."""
        try:
            processes = self._processes(group)
            if way == "broadcast":
                return processes.broadcast(root, gives, gets)
            return getattr(processes, way)(gives, gets)
        except Exception as error:
            # Close the group after any error, so that the other members do not wait for this one.
            self._close(group.members)
            raise ConnectionError(
                f"{_said(error)}\n  waited for {group.others()} for at most "
                f"{self._timeout.total_seconds():g} s (GT_COLLECTIVES_TIMEOUT)"
            ) from None

    def leave(self, worker: int) -> None:
        """Close the groups that contain a worker, so that members that wait there fail."""
        for members in [members for members in self._groups if worker in members]:
            self._close(members)

    def _processes(self, group: Group) -> "Processes":
        known = self._groups.get(group.members)
        if known and known[0] == group.epoch:
            return known[1]
        self._close(group.members)
        store = self._own
        if group.rank != 0:
            host, _, port = group.store.rpartition(":")
            store = distributed.TCPStore(
                host, int(port), is_master=False, wait_for_workers=False, timeout=self._timeout
            )
        name = f"gt/{'-'.join(map(str, group.members))}/{group.epoch}"
        made = self._make(distributed.PrefixStore(name, store), group.rank, len(group.members))
        processes = Processes(made, self._device, len(group.members))
        self._groups[group.members] = (group.epoch, processes)
        return processes

    def _make(self, store: distributed.Store, rank: int, size: int) -> Any:
        if self._backend == "nccl":
            options = distributed.ProcessGroupNCCL.Options()
            options._timeout = self._timeout
            return distributed.ProcessGroupNCCL(store, rank, size, options)
        gloo: Any = distributed.ProcessGroupGloo
        options = gloo._Options()
        options._timeout = self._timeout
        options._devices = [gloo.create_device(hostname=self._address)]
        return gloo(store, rank, size, options)

    def _close(self, members: tuple[int, ...]) -> None:
        if known := self._groups.pop(members, None):
            with suppress(RuntimeError):
                known[1].abort()


class Processes:
    """A process group's collectives, on tensors of any strides."""

    def __init__(self, made: Any, device: torch.device, size: int):
        self._made = made
        self._device = device
        self._size = size
        # Older versions have no `abort`: they close when the last reference is dropped.
        self.abort = getattr(made, "abort", lambda: None)

    def all_reduce(self, gives: list[Any], gets: list[Any]) -> list[torch.Tensor]:
        """Return the sum of all members' tensors."""
        # The reduction is in place, but an engine's tensors are immutable.
        total = gives[0][1].clone(memory_format=torch.contiguous_format)
        self._made.allreduce([total]).wait()
        return [total]

    def reduce_scatter(self, gives: list[Any], gets: list[Any]) -> list[torch.Tensor]:
        """Return the sum of all members' tensors for this rank."""
        (_, meta) = gets[0]
        given = torch.cat([tensor.reshape(-1) for _, tensor in gives])
        total = torch.empty(meta.shape, dtype=DTYPES[meta.dtype], device=self._device)
        self._made._reduce_scatter_base(total.view(-1), given).wait()
        return [total]

    def all_gather(self, gives: list[Any], gets: list[Any]) -> list[torch.Tensor]:
        """Return the other members' tensors."""
        given = _as_bytes(gives[0][1])
        whole = self._room(self._size * len(given))
        self._made._allgather_base(whole, given).wait()
        parts = whole.view(self._size, -1)
        return [_as_tensor(parts[rank], meta) for rank, meta in gets]

    def broadcast(self, root: int | None, gives: list[Any], gets: list[Any]) -> list[torch.Tensor]:
        """Send the tensor of rank `root` to all others; return it there."""
        options: Any = distributed.BroadcastOptions()
        options.rootRank, options.rootTensor = root, 0
        room = _as_bytes(gives[0][1]) if gives else self._room(gets[0][1].bytes)
        self._made.broadcast([room], options).wait()
        return [_as_tensor(room, meta) for _, meta in gets]

    def all_to_all(self, gives: list[Any], gets: list[Any]) -> list[torch.Tensor]:
        """Send any number of tensors to each rank; return those received."""
        given = [[_as_bytes(tensor) for to, tensor in gives if to == rank] for rank in self._ranks]
        sent = [sum(map(len, tensors)) for tensors in given]
        got = [sum(meta.bytes for of, meta in gets if of == rank) for rank in self._ranks]
        sending = torch.cat([self._room(0), *(tensor for some in given for tensor in some)])
        received = self._room(sum(got))
        self._made.alltoall_base(received, sending, got, sent).wait()
        rest = list(received.split(got))
        made = []
        for rank, meta in gets:
            made.append(_as_tensor(rest[rank][: meta.bytes], meta))
            rest[rank] = rest[rank][meta.bytes :]
        return made

    @property
    def _ranks(self) -> range:
        return range(self._size)

    def _room(self, length: int) -> torch.Tensor:
        return torch.empty(length, dtype=_BYTES, device=self._device)


def _as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().view(-1).view(_BYTES)


def _as_tensor(values: torch.Tensor, meta: Meta) -> torch.Tensor:
    return values.view(DTYPES[meta.dtype]).view(meta.shape)


def _said(error: Exception) -> str:
    """Return the first line of an error, without its location in PyTorch's sources."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return re.sub(r"^\[\S*:\d+\] ", "", first).split(" This is typically caused")[0]
