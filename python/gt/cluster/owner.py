"""`python -m gt.cluster.owner FOLDER`: own a cluster in the background.

`gt cluster up local` and `gt cluster up ssh` start it, since their workers end with their owner. It
closes the cluster at SIGTERM, and takes a new size from the file `size` in the cluster's folder.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path

from gt.cluster import kinds
from gt.cluster.errors import ClusterError
from gt.cluster.started import read_record, start_of

#: How often it looks for a new size, in seconds.
_EVERY = 0.5


def main(argv: list[str] | None = None) -> int:
    """Own a cluster until a signal; return the exit status."""
    name, timeout = sys.argv[1:] if argv is None else argv
    record = read_record(name)
    is_ending = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: is_ending.set())
    record = replace(record, process=os.getpid(), since=start_of(os.getpid()))
    record.write()
    told = record.folder / "started"
    cluster = kinds.find(record.kind)(name=name, folder=record.folder, **record.arguments)
    try:
        cluster.start(timeout=float(timeout))
    except (ClusterError, OSError, TypeError, ValueError) as error:
        _tell(told, str(error))
        return 1
    if record.adapt is not None:
        minimum, maximum, idle = record.adapt
        cluster.adapt(int(minimum), int(maximum), idle=idle)
    _tell(told, "")
    wanted = record.folder / "size"
    while not is_ending.wait(_EVERY):
        if cluster.size != record.size:
            record = replace(record, size=cluster.size)
            record.write()
        if wanted.exists():
            size = int(wanted.read_text())
            wanted.unlink()
            cluster.scale(size)
    cluster.close()
    return 0


def _tell(path: Path, text: str) -> None:
    draft = path.with_name(".started")
    draft.write_text(text)
    draft.rename(path)


if __name__ == "__main__":
    sys.exit(main())
