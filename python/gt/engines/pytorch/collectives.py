"""Tensors between PyTorch engines: torch.distributed, by NCCL or Gloo.

Groups are made directly, without torch.distributed's global state, and found in a store that the
first member keeps. Neither encrypts nor asks who is there: they listen at one address, that of
the loopback interface unless the user names another.
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

#: The request for an interface's address, of macOS and of Linux.
_SIOCGIFADDR = 0xC020_6921 if sys.platform == "darwin" else 0x8915
_EXACT = frozenset({"int32", "int64", "float32", "float64"})
_BYTES = torch.uint8


def address_of(interface: str | None) -> str:
    """Give the address of a network interface; without one, of this machine for itself."""
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
    """Joins engines that have tensors on the same kind of device."""

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
            # NCCL takes one process for each GPU, and its interface from the environment. What an
            # older PyTorch does not tell apart is taken for one GPU.
            self.device = str(getattr(torch.cuda.get_device_properties(device), "uuid", device))
            os.environ.setdefault("NCCL_SOCKET_IFNAME", f"={settings.interface or 'lo'}")
        self._own = self._listen()
        self.store = f"{self._address}:{self._own.port}"
        self._groups: dict[tuple[int, ...], tuple[int, Processes]] = {}

    def _listen(self) -> distributed.TCPStore:
        # By itself a store would listen at all addresses.
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
        """Take part in a movement of a group, which is made for its first one."""
        try:
            processes = self._processes(group)
            if way == "broadcast":
                return processes.broadcast(root, gives, gets)
            return getattr(processes, way)(gives, gets)
        except Exception as error:
            # Whatever it was, the others are not to wait for this one.
            self._close(group.members)
            raise ConnectionError(
                f"{_said(error)}\n  it waited for {group.others()}, "
                f"{self._timeout.total_seconds():g} s at most (GT_COLLECTIVES_TIMEOUT)"
            ) from None

    def leave(self, worker: int) -> None:
        """Close the groups with a worker: whoever waits there notices."""
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
    """A group's collectives, on tensors that may lie in memory in any way."""

    def __init__(self, made: Any, device: torch.device, size: int):
        self._made = made
        self._device = device
        self._size = size
        # Older ones close when nobody refers to them.
        self.abort = getattr(made, "abort", lambda: None)

    def all_reduce(self, gives: list, gets: list) -> list[torch.Tensor]:
        """Add up everybody's tensor."""
        # It is done in place, and an engine's tensors are never written to.
        total = gives[0][1].clone(memory_format=torch.contiguous_format)
        self._made.allreduce([total]).wait()
        return [total]

    def reduce_scatter(self, gives: list, gets: list) -> list[torch.Tensor]:
        """Add up everybody's tensor for each rank."""
        (_, meta) = gets[0]
        given = torch.cat([tensor.reshape(-1) for _, tensor in gives])
        total = torch.empty(meta.shape, dtype=DTYPES[meta.dtype], device=self._device)
        self._made._reduce_scatter_base(total.view(-1), given).wait()
        return [total]

    def all_gather(self, gives: list, gets: list) -> list[torch.Tensor]:
        """Give everybody's tensor to all."""
        given = _as_bytes(gives[0][1])
        whole = self._room(self._size * len(given))
        self._made._allgather_base(whole, given).wait()
        parts = whole.view(self._size, -1)
        return [_as_tensor(parts[rank], meta) for rank, meta in gets]

    def broadcast(self, root: int | None, gives: list, gets: list) -> list[torch.Tensor]:
        """Give one rank's tensor to all others."""
        options: Any = distributed.BroadcastOptions()
        options.rootRank, options.rootTensor = root, 0
        room = _as_bytes(gives[0][1]) if gives else self._room(gets[0][1].bytes)
        self._made.broadcast([room], options).wait()
        return [_as_tensor(room, meta) for _, meta in gets]

    def all_to_all(self, gives: list, gets: list) -> list[torch.Tensor]:
        """Give each rank what is for it, however much that is."""
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
    """Give the first line of an error, without where in PyTorch's sources it was made."""
    first = next(iter(str(error).splitlines()), type(error).__name__)
    return re.sub(r"^\[\S*:\d+\] ", "", first).split(" This is typically caused")[0]
