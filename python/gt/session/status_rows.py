"""The types of the dicts in a `gt.Status`."""

from typing import TypedDict


class Window(TypedDict):
    """Device time in a window, in seconds on all workers."""

    entitled_seconds: float
    used_seconds: float


#: The windows by name: "10s", "1min" and "10min".
Windows = dict[str, Window]


class GpuRow(TypedDict):
    """A worker's GPU; a value that is not known is None."""

    name: str
    index: int | None
    uuid: str
    used_percent: int | None
    used_bytes: int | None
    total_bytes: int | None


class WorkerRow(TypedDict):
    """A worker; a value that is not known is None."""

    number: int
    name: str
    machine: str | None
    rack: str | None
    engine: str | None
    tensors: int | None
    bytes: int | None
    memory_limit: int | None
    spilled_bytes: int | None
    snapshot_bytes: int | None
    snapshot_disk_bytes: int | None
    gpu: GpuRow | None
    draining: bool
    queued: int
    busy_for: float | None


class _Totals(TypedDict):
    share: float
    device_seconds: float
    windows: Windows
    bytes: int
    spilled_bytes: int


class _Entitled(_Totals):
    user: str
    team: str
    weights: tuple[int, int]
    priority: int
    memory_quotas: list[tuple[str, int]]


class ErrorRow(TypedDict):
    """An error that a session's program received, `seconds` ago."""

    seconds: float
    operation: str
    reason: str
    worker: str
    line: str


class SessionRow(_Entitled):
    """A session."""

    number: int
    name: str
    program: str
    login: str
    host: str
    slots: list[str]
    seconds: float
    instructions: int
    open: int
    queued: int
    recoveries: int
    unkept: str
    behind: list[str]
    waits_for: str
    last_error: ErrorRow | None


class UserRow(_Entitled):
    """A user, with the sums over the sessions."""

    sessions: int


class TeamRow(_Totals):
    """A team, with the sums over the sessions of its users."""

    team: str
    weight: int
    sessions: int
