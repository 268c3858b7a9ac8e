"""`gt cluster up`: start a cluster that outlives the command."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from typing import Any

from gt.cluster import kinds
from gt.cluster.down import CLOSE_WITHIN, end
from gt.cluster.errors import ClusterError
from gt.cluster.started import StartedCluster, clusters_folder, read_record


def script(record: StartedCluster) -> str:
    """Return what `up` would run or submit."""
    return str(kinds.find(record.kind)(**_arguments(record)).script())


def up(record: StartedCluster, timeout: float) -> None:
    """Start a cluster, and print how it is used.

    Raises:
        ClusterError: it exists already, or cannot be started; nothing is left.
    """
    clusters_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        record.folder.mkdir(mode=0o700)
    except FileExistsError:
        raise ClusterError(
            f"the cluster '{record.name}' is there already\n  hint: choose another --name, or end "
            f"it with `gt cluster down {record.name}`"
        ) from None
    try:
        record.write()
        if _has_owner(record):
            _start_owner(record, timeout)
        else:
            kinds.find(record.kind)(**_arguments(record)).start(timeout)
        print(_summary(read_record(record.name)))
    except BaseException:
        try:
            end(read_record(record.name))
        except (ClusterError, OSError) as error:
            print(f"gt cluster: not all of '{record.name}' has ended: {error}", file=sys.stderr)
        else:
            record.remove()
        raise


def _has_owner(record: StartedCluster) -> bool:
    return record.kind in kinds.OWNED or record.adapt is not None


def _arguments(record: StartedCluster) -> dict[str, Any]:
    """Return the arguments of the class with which a cluster is started."""
    keep = {} if _has_owner(record) else {"keep": True}
    return {**record.arguments, "name": record.name, "folder": record.folder, **keep}


def _start_owner(record: StartedCluster, timeout: float) -> None:
    """Start the process that owns a cluster, and wait until the cluster is complete."""
    path = record.folder / "logs" / "owner.log"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("ab") as log:
        owner = subprocess.Popen(
            [sys.executable, "-m", "gt.cluster.owner", record.name, f"{timeout:g}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await_start(record, owner, timeout)
    except BaseException:
        owner.send_signal(signal.SIGTERM)
        try:
            owner.wait(CLOSE_WITHIN)
        except subprocess.TimeoutExpired:
            owner.kill()
            owner.wait()
        raise


def _await_start(record: StartedCluster, owner: subprocess.Popen[bytes], timeout: float) -> None:
    told = record.folder / "started"
    until = time.monotonic() + timeout + CLOSE_WITHIN
    while not told.exists():
        if owner.poll() is not None and not told.exists():
            words = (record.folder / "logs" / "owner.log").read_text(errors="replace")
            raise ClusterError(f"the owner of the cluster '{record.name}' has ended\n{words}")
        if time.monotonic() > until:
            raise ClusterError(f"the owner of the cluster '{record.name}' does not answer")
        time.sleep(0.02)
    failure = told.read_text()
    if failure:
        raise ClusterError(failure)


def _summary(record: StartedCluster) -> str:
    listens = (record.folder / "address").read_text().strip()
    address = f"file://{record.folder}/address"
    return (
        f"gt cluster: '{record.name}' runs at {listens}\n"
        f"  a program:  gt.connect({json.dumps(address, ensure_ascii=False)})\n"
        f"  a watcher:  gt top {shlex.quote(address)}\n"
        f"  its end:    gt cluster down {record.name}"
    )
