"""The state of the cluster: `gt.status()`."""

from typing import Any

from gt import _gt
from gt._display import html
from gt.session.status_rows import GpuRow, SessionRow, TeamRow, UserRow, Windows, WorkerRow


class Status:
    """The state of a dispatcher at one moment, with its workers and sessions; prints as a table.

    `workers`, `sessions`, `users` and `teams` are lists of dicts; a value that is not known is
    None.

    Of a worker:
        `memory_limit`: the bytes that tensors may take in its memory (`gt worker --memory`); None
        without a limit.
        `snapshot_bytes`, `snapshot_disk_bytes`: the size of the session snapshots that it keeps in
        memory and on disk, from which tensors are restored when a worker is lost.
        `machine`, `rack`: the name of its machine, and of what is near it (`gt worker --rack`);
        None for workers in this process.
        `draining`: whether it hands over what it has, and ends (`gt worker drain`).
        `gpu`: its NVIDIA GPU: the `name`, the `index` in `nvidia-smi`, the `uuid`, and what the
        driver reports of it with all programs on it: `used_percent`, the part of the time in which
        it computed, `used_bytes` and `total_bytes` of memory. None for workers on a processor.

    Of a session:
        `name`: as people see it, `train.py ada@box #3`; `program`, `login` and `host` are what its
        client says of itself, `number` is the server's, `user` the user whom its key proves.
        `share`: the fraction of a worker's time that it is entitled to while all sessions have
        work, between 0 and 1.
        `device_seconds`: the time that it has used.
        `anticipated_seconds`, `anticipations`: how long devices were kept idle for it as it was
        about to ask again, which is a part of that time, and how often.
        `windows`: the device time, on all workers, in the last "10s", "1min" and "10min", to a
        second. `used_seconds` is the time that it used, as far as workers have reported it.
        `entitled_seconds` is the time that it was entitled to: while it had work at a worker, its
        share of that worker's time among those that had work there, too.
        `bytes`, `spilled_bytes`: what it holds in the memory of all workers, and what was spilled.
        `slots`: the name of the worker that carries each slot ("" for a slot without a worker).
        `recoveries`: the number of times that its tensors were restored after the loss of a worker.
        `unkept`: why they could not be restored now (empty if they could).
        `last_error`: the last error that its program received, of sessions of the same user: what
        failed, why, on which worker, `seconds` ago, and the line of the program once it is known.
        None for no error, and for other users' sessions.
        `memory_quotas`: pairs of the holder of a quota and its bytes on each worker.
        `behind`: the sessions that it waits for. They have work on the same workers, and those that
        have used most are first; or they hold memory there, and those with most are first.

    A user has the sums over their sessions, and `sessions`, their number; `device_seconds` includes
    the sessions that have ended since the dispatcher started, and `windows` those that have ended
    within a window. All sessions without a user's key belong to one user with an empty name. A team
    has the sums over its users; those without a team are one with an empty name.

    Example:
        >>> session, *_ = gt.status().sessions
        >>> sorted(session["windows"]["10s"])
        ['entitled_seconds', 'used_seconds']
    """

    def __init__(self, report: dict[str, Any]):
        self.at: str = report["at"]
        #: The seconds since the dispatcher started.
        self.seconds: float = report["seconds"]
        self.workers: list[WorkerRow] = report["workers"]
        self.sessions: list[SessionRow] = report["sessions"]
        self.users: list[UserRow] = report["users"]
        self.teams: list[TeamRow] = report["teams"]

    def _tables(self) -> list[tuple[list[str], list[list[str]]]]:
        has_gpus = any(worker["gpu"] for worker in self.workers)
        workers = [
            [
                worker["name"],
                worker["engine"] or "-",
                _state(worker),
                f"{worker['queued']:,}",
                "-" if worker["tensors"] is None else f"{worker['tensors']:,}",
                "-" if worker["bytes"] is None else _memory(worker),
                *([_gpu(worker["gpu"])] if has_gpus else []),
            ]
            for worker in self.workers
        ]
        sessions = [
            [
                session["name"],
                f"{session['seconds']:.0f} s",
                f"{session['instructions']:,}",
                f"{session['open']:,}",
                f"{100 * session['share']:.0f} %",
                *_used(session["windows"]),
                f"{session['device_seconds']:.1f} s",
                _memory(session),
                _quota(session["memory_quotas"]),
                ", beside ".join([session["waits_for"], *session["behind"][:1]]),
            ]
            for session in self.sessions
        ]
        users = [
            [
                user["user"] or "-",
                user["team"] or "-",
                str(user["sessions"]),
                str(user["weights"][1]),
                f"{100 * user['share']:.0f} %",
                *_used(user["windows"]),
                f"{user['device_seconds']:.1f} s",
                _memory(user),
                _quota(user["memory_quotas"]),
            ]
            for user in self.users
        ]
        users += [
            [
                "(team)",
                team["team"] or "-",
                str(team["sessions"]),
                str(team["weight"]),
                f"{100 * team['share']:.0f} %",
                *_used(team["windows"]),
                f"{team['device_seconds']:.1f} s",
                _memory(team),
                "-",
            ]
            for team in self.teams
            if any(team["team"] for team in self.teams)
        ]
        head = ["worker", "engine", "state", "queue", "tensors", "memory"]
        tables = [
            ([*head, "gpu"] if has_gpus else head, workers),
            (
                [
                    "session",
                    "age",
                    "instructions",
                    "open",
                    "share",
                    *_WINDOWS,
                    "time",
                    "memory",
                    "quota",
                    "waits for",
                ],
                sessions,
            ),
        ]
        if any(user["user"] for user in self.users):
            head = ["user", "team", "sessions", "weight", "share", *_WINDOWS]
            tables.append(([*head, "time", "memory", "quota"], users))
        return tables

    def _heading(self) -> str:
        return f"{self.at}, up {self.seconds:.0f} s"

    def __repr__(self) -> str:
        lines = [self._heading()]
        for head, rows in self._tables():
            widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
            lines.append("")
            for row in [head, *rows]:
                cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
                lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        things = ("workers", "sessions", "users and teams")
        tables = [
            html.table(head, rows, len(rows), name)
            for name, (head, rows) in zip(things, self._tables(), strict=False)
        ]
        return html.page(html.paragraph(self._heading()), *tables)


#: The heads of the columns of device time: used, of the time entitled to.
_WINDOWS = ["in 10 s", "in 1 min"]


def _used(windows: Windows) -> list[str]:
    report = [windows["10s"], windows["1min"]]
    return [f"{each['used_seconds']:.1f} of {each['entitled_seconds']:.1f} s" for each in report]


def _state(worker: WorkerRow) -> str:
    busy = worker["busy_for"]
    state = "idle" if busy is None else f"busy for {busy:.1f} s"
    return f"{state}, draining" if worker["draining"] else state


def _memory(report: WorkerRow | SessionRow | UserRow | TeamRow) -> str:
    memory, elsewhere = report["bytes"] or 0, report["spilled_bytes"]
    return f"{_bytes(memory)} + {_bytes(elsewhere)} on disk" if elsewhere else _bytes(memory)


def _gpu(gpu: GpuRow | None) -> str:
    if gpu is None:
        return "-"
    words = [gpu["name"] if gpu["index"] is None else f"{gpu['name']} #{gpu['index']}"]
    if gpu["used_percent"] is not None:
        words.append(f"{gpu['used_percent']} %")
    if gpu["used_bytes"] is not None and gpu["total_bytes"] is not None:
        words.append(f"{_bytes(gpu['used_bytes'])} of {_bytes(gpu['total_bytes'])}")
    return ", ".join(words)


def _quota(quotas: list[tuple[str, int]]) -> str:
    return _bytes(min(count for _, count in quotas)) if quotas else "-"


def _bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{count} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def status() -> Status:
    """Return the state of the dispatcher, its workers and its sessions.

    Never waits for work: a busy worker is shown as it last reported.

    Raises:
        ConnectionError: the connection to the server is lost.
    """
    return Status(_gt.get_status())
