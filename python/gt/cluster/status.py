"""What a cluster has, at one moment."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from gt import _gt


@dataclass(frozen=True)
class ClusterStatus:
    """A cluster at one moment; prints as a short text.

    Args:
        kind: `local`, `slurm`, `ray`, `kubernetes` or `ssh`.
        name: the cluster's name.
        address: where its server listens, or None if it does not.
        wanted: how many workers, nodes, pods or hosts it is to have.
        unit: which of these that counts.
        workers: the workers that serve, as in `gt.status()`.
        sessions: the sessions, as in `gt.status()`.
        notes: what the scheduler says, or what has failed, a line each.
    """

    kind: str
    name: str
    address: str | None
    wanted: int
    unit: str
    workers: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return a short text."""
        where = f"at {self.address}" if self.address else "no server"
        count = f"{self.wanted} {self.unit}{'s' if self.wanted != 1 else ''}"
        lines = [
            f"{self.kind} cluster '{self.name}': {where}",
            f"  {len(self.workers)} workers serve, of {count}; {len(self.sessions)} sessions",
        ]
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])


def read_status(address: str, key_file: str | None = None) -> dict[str, Any]:
    """Return what the server at an address reports, as `gt top --once --json` does.

    Raises:
        ConnectionError: it cannot be reached.
    """
    report = _gt.top(once=True, json=True, address=address, key_file=key_file)
    found: dict[str, Any] = json.loads(report)
    return found
