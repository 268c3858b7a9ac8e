"""The clusters that `gt cluster up` has started, by name."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gt.cluster.errors import ClusterError

#: What a name may consist of: it is that of a folder, and of jobs and pods.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


def clusters_folder() -> Path:
    """Return the folder of all clusters of this user: GT_CLUSTERS, or ~/.gt/clusters."""
    given = os.environ.get("GT_CLUSTERS")
    return Path(given) if given else Path.home() / ".gt" / "clusters"


@dataclass(frozen=True)
class StartedCluster:
    """A cluster that outlives the command that started it."""

    name: str
    kind: str
    #: The arguments of its class.
    arguments: dict[str, Any] = field(default_factory=dict)
    #: The process that owns it, if one does, and when that started, in the system's ticks.
    process: int | None = None
    since: str | None = None
    #: If it adapts: the least and the greatest size, and the seconds without work after which it
    #: has the least.
    adapt: Sequence[float] | None = None
    #: How many workers, nodes, pods or hosts it is to have, as far as its owner knows.
    size: int | None = None

    @property
    def folder(self) -> Path:
        """Return its folder."""
        return clusters_folder() / self.name

    def write(self) -> None:
        """Write it, as a whole."""
        draft = self.folder / ".up.json"
        draft.write_text(json.dumps(asdict(self), indent=1) + "\n")
        draft.rename(self.folder / "up.json")

    def remove(self) -> None:
        """Remove it, with its key and its logs."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_owned(self) -> bool:
        """Return whether the process that owns it is alive."""
        return self.process is not None and start_of(self.process) == self.since


def checked_name(name: str) -> str:
    """Return a name for a cluster; it is checked.

    Raises:
        ClusterError: it is not valid.
    """
    if not _NAME.fullmatch(name):
        raise ClusterError(
            f"the name is '{name}', expected 1 to 40 of a-z, 0-9 and '-', with a letter or a digit "
            "at both ends"
        )
    return name


def read_record(name: str) -> StartedCluster:
    """Return the cluster of a name.

    Raises:
        ClusterError: there is none.
    """
    path = clusters_folder() / checked_name(name) / "up.json"
    try:
        return StartedCluster(**json.loads(path.read_text()))
    except FileNotFoundError:
        others = ", ".join(record.name for record in all_records()) or "none"
        raise ClusterError(
            f"there is no cluster '{name}'\n  hint: there are {others}; `gt cluster up` starts one"
        ) from None
    except (ValueError, TypeError) as error:
        raise ClusterError(f"{path} is damaged: {error}") from None


def all_records() -> list[StartedCluster]:
    """Return all clusters, by name."""
    found = sorted(path.parent.name for path in clusters_folder().glob("*/up.json"))
    return [read_record(name) for name in found]


def start_of(process: int) -> str | None:
    """Return when a process started, in the system's ticks; None if it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # The state, and the 22nd field of all (proc(5)).
    return None if fields[0] == "Z" else fields[19]
