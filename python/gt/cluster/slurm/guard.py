"""`python -m gt.cluster.slurm.guard`: the guard of a SLURM cluster whose program may die.

A child of the program: it renews the lease while the program lives, also while that computes
without letting go of the interpreter, and ends the jobs when its standard input ends. Where it dies
with the program, as when their machine fails, the jobs see that the lease is not renewed any more.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

from gt.cluster.errors import ClusterError
from gt.cluster.slurm.end import end_jobs, end_orphans
from gt.cluster.slurm.record import LEASE_EVERY, Lease

#: How often SLURM is asked whether the job with the server is over, in seconds.
_EVERY = 15.0


def main(argv: list[str] | None = None) -> int:
    """Guard a cluster until the program ends, or says that it has ended the cluster itself."""
    parser = argparse.ArgumentParser(prog="python -m gt.cluster.slurm.guard")
    parser.add_argument("folder", help="the cluster's folder")
    parser.add_argument("--remove", action="store_true", help="remove the folder with the cluster")
    args = parser.parse_args(argv)
    # What ends the program ends the cluster, which is done here.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lease, is_over = Lease(Path(args.folder)), threading.Event()
    is_dismissed = False

    def watch() -> None:
        nonlocal is_dismissed
        while read := os.read(0, 64):
            is_dismissed = is_dismissed or b"done" in read
        is_over.set()

    def look() -> None:
        """End the other jobs, and withdraw the address, when the job with the server is over."""
        while not is_over.wait(_EVERY):
            try:
                end_orphans(Path(args.folder))
            except (ClusterError, OSError, ValueError):
                pass  # SLURM is asked again.

    threading.Thread(target=watch, daemon=True).start()
    threading.Thread(target=look, daemon=True).start()
    while True:
        try:
            lease.renew()
        except OSError:
            pass  # The jobs count readings: a file system that answers late does not end them.
        if is_over.wait(LEASE_EVERY):
            break
    if not is_dismissed:
        try:
            end_jobs(Path(args.folder))
        except (ClusterError, OSError) as error:
            print(f"gt cluster: {error}", file=sys.stderr, flush=True)
        if args.remove:
            shutil.rmtree(args.folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
