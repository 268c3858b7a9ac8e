"""The state of the cluster: `gt.status()`."""

from typing import Any

from gt import _gt


class Status:
    """The state of a dispatcher at one moment, with its workers and sessions; prints as a table.

    `workers`, `sessions` and `users` are lists of dicts; a value that is not known is None.

    Of a worker:
        `snapshot_bytes`, `snapshot_disk_bytes`: the size of the session snapshots that it keeps in
        memory and on disk, from which tensors are restored when a worker is lost.

    Of a session:
        `name`: as people see it, `train.py ada@box #3`; `program`, `login` and `host` are what its
        client says of itself, `number` is the server's, `user` the user whom its key proves.
        `share`: the fraction of a worker's time that it is entitled to while all sessions have
        work, between 0 and 1.
        `device_seconds`: the time that it has used.
        `anticipated_seconds`, `anticipations`: how long devices were kept idle for it as it was about
        to ask again, which is a part of that time, and how often.
        `bytes`, `spilled_bytes`: what it holds in the memory of all workers, and what was spilled.
        `slots`: the name of the worker that carries each slot ("" for a slot without a worker).
        `recoveries`: the number of times that its tensors were restored after the loss of a worker.
        `unkept`: why they could not be restored now (empty if they could).
        `memory_quotas`: pairs of the holder of a quota and its bytes on each worker.
        `behind`: the sessions that it waits for. They have work on the same workers, and those that
        have used most are first; or they hold memory there, and those with most are first.

    A user has the sums over their sessions, and `sessions`, their number; `device_seconds` includes
    the sessions that have ended since the dispatcher started. All sessions without a user's key
    belong to one user with an empty name.
    """

    def __init__(self, told: dict[str, Any]):
        self.at: str = told["at"]
        #: The seconds since the dispatcher started.
        self.seconds: float = told["seconds"]
        self.workers: list[dict[str, Any]] = told["workers"]
        self.sessions: list[dict[str, Any]] = told["sessions"]
        self.users: list[dict[str, Any]] = told["users"]

    def _tables(self) -> list[tuple[list[str], list[list[str]]]]:
        workers = [
            [
                worker["name"],
                worker["engine"] or "-",
                "idle" if worker["busy_for"] is None else f"busy for {worker['busy_for']:.1f} s",
                f"{worker['queued']:,}",
                "-" if worker["tensors"] is None else f"{worker['tensors']:,}",
                "-" if worker["bytes"] is None else _memory(worker),
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
                f"{user['device_seconds']:.1f} s",
                _memory(user),
                _quota(user["memory_quotas"]),
            ]
            for user in self.users
        ]
        tables = [
            (["worker", "engine", "state", "queue", "tensors", "memory"], workers),
            (
                [
                    "session",
                    "age",
                    "instructions",
                    "open",
                    "share",
                    "time",
                    "memory",
                    "quota",
                    "waits for",
                ],
                sessions,
            ),
        ]
        if any(user["user"] for user in self.users):
            head = ["user", "team", "sessions", "weight", "share", "time", "memory", "quota"]
            tables.append((head, users))
        return tables

    def __repr__(self) -> str:
        lines = [f"{self.at}, up {self.seconds:.0f} s"]
        for head, rows in self._tables():
            widths = [max(len(row[place]) for row in [head, *rows]) for place in range(len(head))]
            lines.append("")
            for row in [head, *rows]:
                cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
                lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        parts = [f"<p>{escape(self.at)}, up {self.seconds:.0f} s</p>"]
        for head, rows in self._tables():
            cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
            body = "".join(
                "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
                for row in rows
            )
            parts.append(f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>")
        return "\n".join(parts)


def _memory(told: dict[str, Any]) -> str:
    memory, elsewhere = told["bytes"], told["spilled_bytes"]
    return f"{_bytes(memory)} + {_bytes(elsewhere)} on disk" if elsewhere else _bytes(memory)


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
