"""The process group, which consists of this process."""

from __future__ import annotations

import enum
import os
from collections.abc import Sequence
from typing import Any

#: The backends of PyTorch.
_BACKENDS = ("gloo", "nccl", "mpi", "ucc", "xccl", "fake")

_ONE_PROCESS = (
    "one process drives all workers\n"
    "  hint: start the program once, with python and not torchrun; gt.signal shards over workers"
)


class ReduceOp(enum.Enum):
    """How a collective combines the tensors of several processes; all are the same for one."""

    SUM = "sum"
    AVG = "avg"
    PRODUCT = "product"
    MIN = "min"
    MAX = "max"
    BAND = "band"
    BOR = "bor"
    BXOR = "bxor"


class DistBackendError(RuntimeError):
    """Never raised: a group of one process sends nothing that could fail."""


class Backend(str):
    """The name of a backend, in lower case."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    UCC = "ucc"

    def __new__(cls, name: str) -> Backend:
        """Return the name in lower case."""
        if not isinstance(name, str):
            raise ValueError(f"Backend: the name must be a string, not {type(name).__name__}")
        return super().__new__(cls, name.lower())


class ProcessGroup:
    """A group of this process alone."""

    def __init__(self, backend: str = "gloo"):
        self.backend = Backend(backend)

    def rank(self) -> int:
        """Return 0."""
        return 0

    def size(self) -> int:
        """Return 1."""
        return 1


class Work:
    """A collective that was issued with `async_op=True`, and is complete."""

    def wait(self, timeout: Any = None) -> bool:
        """Return True at once."""
        return True

    def is_completed(self) -> bool:
        """Return True."""
        return True


class _Members(type):
    """The metaclass of `group`, whose `WORLD` is the default process group or None."""

    world: ProcessGroup | None = None

    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default process group; None before `init_process_group`."""
        return _Members.world


class group(metaclass=_Members):
    """The default process group as `group.WORLD`."""


class GroupMember(metaclass=_Members):
    """The default process group as `GroupMember.WORLD`."""

    NON_GROUP_MEMBER = -100


def is_available() -> bool:
    """Return True: a group of this process can be made."""
    return True


def is_initialized() -> bool:
    """Return whether `init_process_group` was called."""
    return _Members.world is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Make the default process group, of this process alone.

    Args:
        backend: a name that `get_backend` returns; it has no effect.
        init_method: accepted as in PyTorch; it has no effect.
        timeout: accepted as in PyTorch; nothing waits.
        world_size: 1; by default the environment variable WORLD_SIZE, or 1.
        rank: 0; by default the environment variable RANK, or 0.
        store: accepted as in PyTorch; it has no effect.
        group_name: accepted as in PyTorch; it has no effect.
        pg_options: accepted as in PyTorch; it has no effect.
        device_id: accepted as in PyTorch; it has no effect.

    Raises:
        ValueError: there is a group already, or the backend is unknown.
        RuntimeError: several processes are asked for.

    >>> gt.distributed.init_process_group("gloo", rank=0, world_size=1)
    >>> gt.distributed.get_world_size()
    1
    >>> gt.distributed.destroy_process_group()
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    _check_backend(backend or "gloo")
    size = world_size if world_size >= 0 else int(os.environ.get("WORLD_SIZE", "1"))
    number = rank if rank >= 0 else int(os.environ.get("RANK", "0"))
    if size != 1 or number != 0:
        raise RuntimeError(
            f"init_process_group: got rank {number} of {size} processes, but {_ONE_PROCESS}"
        )
    _Members.world = ProcessGroup(backend or "gloo")


def _check_backend(backend: str) -> None:
    """Check the name of a backend, or those of several devices, as in `cpu:gloo,cuda:nccl`."""
    for part in str(backend).lower().split(","):
        if part.rpartition(":")[2] not in _BACKENDS:
            raise ValueError(
                f"init_process_group: backend is {backend!r}, expected one of "
                f"{', '.join(_BACKENDS)}, or one for each device as in 'cpu:gloo,cuda:nccl'"
            )


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Remove a process group; the default one by default."""
    _default(group)
    if group is None or group is _Members.world:
        _Members.world = None


def new_group(ranks: Sequence[int] | None = None, timeout: Any = None, **options: Any) -> Any:
    """Return a group of the processes with the given ranks: of this one, or of none."""
    world = _default(None)
    if unknown := [rank for rank in ranks or () if rank != 0]:
        raise ValueError(f"new_group: there is no rank {unknown[0]} in a group of 1 process")
    if ranks is not None and not ranks:
        return GroupMember.NON_GROUP_MEMBER
    return ProcessGroup(options.get("backend") or world.backend)


def get_rank(group: Any = None) -> int:
    """Return 0, the number of this process; -1 for a group without it.

    Raises:
        ValueError: there is no process group.
    """
    return -1 if _default(group) == GroupMember.NON_GROUP_MEMBER else 0


def get_world_size(group: Any = None) -> int:
    """Return 1, the number of processes; -1 for a group without this one.

    Raises:
        ValueError: there is no process group.
    """
    return -1 if _default(group) == GroupMember.NON_GROUP_MEMBER else 1


def get_backend(group: ProcessGroup | None = None) -> str:
    """Return the name of the backend that `init_process_group` was called with."""
    return _default(group).backend


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """Return the ranks of the processes in a group: `[0]`."""
    _default(group)
    return [0]


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """Return the rank in the default group of a process in a group: 0."""
    return check_rank("get_global_rank", group_rank, group)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """Return the rank in a group of a process in the default group: 0."""
    return check_rank("get_group_rank", global_rank, group)


def is_backend_available(backend: str) -> bool:
    """Return whether a group of this process can be made with a backend's name: always."""
    return True


def is_gloo_available() -> bool:
    """Return True: a group can be made with the name."""
    return True


def is_nccl_available() -> bool:
    """Return False: there is no GPU to choose; programs then choose "gloo", without effect."""
    return False


def is_mpi_available() -> bool:
    """Return False."""
    return False


def is_torchelastic_launched() -> bool:
    """Return whether torchrun started this process."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def check_rank(name: str, rank: int | None, group: Any) -> int:
    """Return 0 for the rank of this process, also as None; raise for others."""
    _default(group)
    if rank not in (None, 0):
        raise ValueError(f"{name}: there is no rank {rank} in a group of 1 process")
    return 0


def _default(group: Any) -> Any:
    """Return a group; the default one for None."""
    if _Members.world is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _Members.world if group is None else group
