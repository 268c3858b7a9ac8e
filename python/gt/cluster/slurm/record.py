"""What the jobs of a SLURM cluster, its program and `gt cluster` know of each other, in files.

All are in the cluster's folder, which the nodes share: no port is opened for it, and a program
that is started later, or elsewhere, finds everything.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gt.cluster.folder import write_text

#: How often a living program renews its lease, in seconds.
LEASE_EVERY = 1.0

#: How often a job reads the lease and the record, in seconds.
READ_EVERY = 0.5

#: How many readings in a row find the lease as it was when the program counts as dead. Readings are
#: counted, not seconds: a file system that does not answer for a minute delays them alone.
LEASE_READINGS = 30


@dataclass
class JobRecord:
    """A job: its number in the cluster, SLURM's ID once it is submitted, and its nodes."""

    number: int
    nodes: int
    job: int | None = None

    @property
    def has_server(self) -> bool:
        """Return whether the server runs in it."""
        return self.number == 0


@dataclass
class ClusterRecord:
    """A cluster: what it was asked for, and its jobs.

    Args:
        name: its name.
        arguments: those of `Slurm`.
        is_temporary: whether its folder is removed with it.
        has_lease: whether its jobs end when the program that began it is gone.
        size: how many nodes it is to have.
        serve: on how many nodes of the first job workers run.
        jobs: its jobs, the one with the server first. A job that is not among them drains itself.
        released: SLURM's IDs of jobs that were to drain and end.
        last_number: the highest number that a job has had.
        is_ended: whether all jobs are to end, undrained.
    """

    name: str
    arguments: dict[str, Any]
    is_temporary: bool = False
    has_lease: bool = False
    size: int = 0
    serve: int = 0
    jobs: list[JobRecord] = field(default_factory=list)
    released: list[int] = field(default_factory=list)
    last_number: int = -1
    is_ended: bool = False

    def write(self, folder: Path) -> None:
        """Write it into a folder. Readers see the earlier one or this one."""
        write_text(record_path(folder), json.dumps(asdict(self), indent=1), mode=0o600)

    def add(self, nodes: int) -> JobRecord:
        """Return a further job, which is not submitted yet."""
        self.last_number += 1
        self.jobs.append(JobRecord(self.last_number, nodes))
        return self.jobs[-1]

    def submitted(self) -> list[int]:
        """Return SLURM's IDs of all jobs that may live."""
        return [job.job for job in self.jobs if job.job is not None] + self.released

    def find(self, number: int) -> JobRecord | None:
        """Return the job of a number, or None."""
        return next((job for job in self.jobs if job.number == number), None)


def record_path(folder: Path) -> Path:
    """Return the path of the record in a cluster's folder."""
    return folder / "cluster.json"


def read_record(folder: Path) -> ClusterRecord:
    """Return the record in a folder.

    Raises:
        FileNotFoundError: it has none.
    """
    read = json.loads(record_path(folder).read_text())
    read["jobs"] = [JobRecord(**job) for job in read["jobs"]]
    return ClusterRecord(**read)


@contextmanager
def changed_record(folder: Path) -> Iterator[ClusterRecord]:
    """Yield the record in a folder, and write it back, while no other process changes it.

    Raises:
        FileNotFoundError: it has none.
    """
    # There is none on Windows, where this module is imported, but no SLURM is.
    import fcntl

    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:
            pass  # There are file systems without locks.
        record = read_record(folder)
        try:
            yield record
        finally:
            record.write(folder)


class Lease:
    """A number that a living program counts up in a file, for the jobs to see that it lives."""

    def __init__(self, folder: Path):
        """Name the file; nothing is read or written yet."""
        self._path = folder / "lease"
        self._count = 0

    def renew(self) -> None:
        """Count up."""
        self._count += 1
        # In place: a network's file system shows a reader the new contents when it opens the file.
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.pwrite(file, b"%020d\n" % self._count, 0)
        finally:
            os.close(file)

    def read(self) -> bytes:
        """Return what is in the file."""
        try:
            return self._path.read_bytes()
        except OSError:
            return b""


class LeaseWatch:
    """Decides from readings of a lease whether its program lives."""

    def __init__(self) -> None:
        """Count no reading yet."""
        self._last: bytes | None = None
        self._same = 0

    def is_over(self, reading: bytes) -> bool:
        """Return whether the lease is over, after one more reading."""
        self._same = self._same + 1 if reading == self._last else 0
        self._last = reading
        return self._same >= LEASE_READINGS
