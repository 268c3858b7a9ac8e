"""`gt cluster down`: end a cluster that `gt cluster up` has started."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from gt.cluster import kinds
from gt.cluster.errors import ClusterError
from gt.cluster.started import (
    DamagedError,
    StartedCluster,
    await_left,
    checked_name,
    clusters_folder,
    read_record,
)

#: How long an owner may take to close its cluster, in seconds.
CLOSE_WITHIN = 30.0


def down(name: str) -> None:
    """End a cluster, and remove its folder; also one whose record is damaged or missing.

    Raises:
        ClusterError: there is none, or it cannot be ended from here.
    """
    folder = clusters_folder() / checked_name(name)
    try:
        record = read_record(name)
    except DamagedError as error:
        _remove_damaged(folder, error)
    except ClusterError:
        if not folder.is_dir():
            raise
        _remove_unstarted(folder)
    else:
        end(record)
        record.remove()


def end(record: StartedCluster) -> None:
    """End a cluster.

    Raises:
        ClusterError: its owner is on another machine, or the scheduler does not end it.
    """
    record.refuse_elsewhere()
    if record.process is not None:
        _end_owner(record)
    if record.kind not in kinds.OWNED:
        _end_kept(record.folder)


def _end_owner(record: StartedCluster) -> None:
    assert record.process is not None
    with suppress(ProcessLookupError):
        if record.is_owned():
            os.kill(record.process, signal.SIGTERM)
    until = time.monotonic() + CLOSE_WITHIN
    while record.is_owned():
        if time.monotonic() > until:
            # What has no scheduler ends with it.
            with suppress(ProcessLookupError):
                os.kill(record.process, signal.SIGKILL)
            print(
                f"gt cluster: the owner of '{record.name}' (process {record.process}) did not "
                f"close it within {CLOSE_WITHIN:g} s, and was killed",
                file=sys.stderr,
            )
            until = float("inf")
        time.sleep(0.02)


def _end_kept(folder: Path) -> None:
    """End what a scheduler runs for a folder, if it does."""
    kind = kinds.kept_in(folder)
    if kind is None:
        return
    try:
        with kinds.attached(kind, folder) as cluster:
            cluster.close()
    except ClusterError:
        # One that was lost meanwhile leaves no record.
        if kinds.kept_in(folder) is not None:
            raise


def _remove_damaged(folder: Path, error: DamagedError) -> None:
    """Remove a folder whose record is damaged, and end what is found by its other files."""
    print(f"gt cluster: {str(error).splitlines()[0]}", file=sys.stderr)
    (folder / "up.json").unlink(missing_ok=True)
    # An owner closes its cluster now.
    await_left(folder)
    try:
        _end_kept(folder)
    except (ClusterError, OSError, TypeError, ValueError) as failure:
        print(
            f"gt cluster: what it has started may still run: {failure}\n"
            "  hint: look for it with the scheduler's own commands",
            file=sys.stderr,
        )
    shutil.rmtree(folder, ignore_errors=True)


def _remove_unstarted(folder: Path) -> None:
    """Remove the folder of an `up` that was killed before it started anything."""
    kind = kinds.kept_in(folder)
    if kind is not None:
        raise ClusterError(
            f"`gt cluster up` has not started the {kind} cluster in {folder}\n"
            f"  hint: gt.cluster.{kinds.find(kind).__name__}.attach(folder).close() ends it"
        )
    await_left(folder)
    shutil.rmtree(folder, ignore_errors=True)
