"""`python -m gt.cluster.owner NAME TIMEOUT`: own a cluster in the background.

`gt cluster up local` and `gt cluster up ssh` start it, since their workers end with their owner. It
closes the cluster at SIGTERM and when the cluster's record is removed, and takes new sizes from the
cluster's folder.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from dataclasses import replace

from gt._processes import Stopped
from gt.cluster import kinds, requests
from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError
from gt.cluster.folder import write_text
from gt.cluster.started import StartedCluster, read_record

#: How often it looks for a new size, in seconds.
_EVERY = 0.5

#: How often it asks a scheduler for its notes, in seconds.
_NOTES_EVERY = 10.0


class Signals:
    """Whether a signal has asked for the end; the first one interrupts the start."""

    def __init__(self) -> None:
        """Take the signals."""
        self.has_come = threading.Event()
        self.interrupts = False
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._hear)

    def _hear(self, *_: object) -> None:
        self.has_come.set()
        if self.interrupts:
            self.interrupts = False
            raise Stopped


class Owner:
    """A cluster that runs, and what others may ask of it and see of it."""

    def __init__(self, cluster: Cluster, record: StartedCluster):
        """Own a cluster that has started."""
        self._cluster, self._record = cluster, record
        self._notes: list[str] | None = None
        self._next_notes = 0.0

    def look(self) -> None:
        """Do what is asked, and write what has changed; an error becomes a note."""
        try:
            self._follow()
            self._write()
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._cluster.note("owner", f"the owner cannot use {self._record.folder}: {error}")
        else:
            self._cluster.note("owner", None)

    def _follow(self) -> None:
        folder = self._record.folder
        request = requests.asked(folder)
        if request is None:
            return
        failure = ""
        try:
            self._cluster.scale(request.size)
        except (RuntimeError, OSError, ValueError) as error:
            failure = str(error)
            self._cluster.note("size", f"it was not scaled to {request.size}: {error}")
        self._next_notes = 0.0
        self._write()
        requests.answer(folder, request, failure)

    def _write(self) -> None:
        if self._cluster.size != self._record.size and self._record.is_there():
            self._record = replace(self._record, size=self._cluster.size)
            self._record.write()
        if time.monotonic() < self._next_notes:
            return
        is_cheap = self._record.kind in kinds.OWNED
        self._next_notes = time.monotonic() + (0.0 if is_cheap else _NOTES_EVERY)
        notes = self._cluster.notes()
        if notes != self._notes:
            requests.write_notes(self._record.folder, notes)
            self._notes = notes


def main(argv: list[str] | None = None) -> int:
    """Own a cluster until a signal; return the exit status."""
    name, timeout = sys.argv[1:] if argv is None else argv
    signals = Signals()
    record = read_record(name).owned_here()
    record.write()
    cluster: Cluster | None = None
    failure = ""
    try:
        signals.interrupts = True
        if signals.has_come.is_set():
            raise Stopped
        cluster = kinds.find(record.kind)(name=name, folder=record.folder, **record.arguments)
        cluster.start(timeout=float(timeout))
        signals.interrupts = False
        if record.adapt is not None:
            minimum, maximum, idle = record.adapt
            cluster.adapt(int(minimum), int(maximum), idle=idle)
        owner = Owner(cluster, record)
        owner.look()
        write_text(record.folder / "started", "")
        while not signals.has_come.wait(_EVERY) and record.is_there():
            owner.look()
    except Stopped:
        failure = f"the start of the cluster '{name}' was stopped"
    except (ClusterError, OSError, TypeError, ValueError) as error:
        failure = str(error)
    signals.interrupts = False
    try:
        if cluster is not None:
            cluster.close()
    except (RuntimeError, OSError) as error:
        failure = f"{failure}\n{error}" if failure else str(error)
    if failure:
        print(f"gt cluster: {failure}", file=sys.stderr, flush=True)
        if record.folder.exists() and not (record.folder / "started").exists():
            write_text(record.folder / "started", failure)
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
