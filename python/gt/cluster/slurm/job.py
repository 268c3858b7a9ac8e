"""`python -m gt.cluster.slurm.job`: a job of a SLURM cluster, on its first node.

It runs the server, if the job has it, and one `srun` step with a task for the workers of each node.
At SIGTERM (the wall time is near), or when the cluster's record does not name this job any more,
the workers hand over what they have, and the job ends. When the record says that the cluster has
ended, or the lease of the program that began it is over, all end at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

from gt._processes import at_least
from gt.cluster.errors import ClusterError, said
from gt.cluster.process import ChildProcess
from gt.cluster.programs import server_command
from gt.cluster.slurm import commands
from gt.cluster.slurm.end import end_orphans
from gt.cluster.slurm.record import READ_EVERY, Lease, LeaseWatch, changed_record, read_record
from gt.cluster.slurm.steps import NodePrograms

#: How often processes are looked at, in seconds.
_EVERY = 0.1

#: How long the server and the node programs may take to end at once, in seconds.
_END_WITHIN = 3.0

#: How often SLURM is asked whether the job with the server is over, in seconds.
_SERVER_EVERY = 60.0

#: How often a server that fails is started again.
_SERVER_TRIES = 3


class Job:
    """The processes of a job, and what they are to do."""

    def __init__(self, args: argparse.Namespace):
        """Start the server and the node programs."""
        self._args, self._folder = args, Path(args.folder)
        self._key = (self._folder / "key").read_text().strip()
        self._lease = (Lease(self._folder), LeaseWatch()) if args.lease else None
        self._record = read_record(self._folder)
        self.is_leaving = threading.Event()
        self._failures = 0
        self._server = self._start_server() if args.number == 0 else None
        address = f"file://{self._folder / 'address'}"
        arguments = ["--address", address, "--key-file", str(self._folder / "key"), "--until-eof"]
        arguments += ["--logs", str(self._folder / "logs"), "--job", str(args.number)]
        if args.workers:
            arguments += ["--workers", str(args.workers)]
        if args.restarts:
            arguments += ["--state", str(self._folder / "state" / f"worker-{args.number}")]
        self._nodes = NodePrograms(args.nodes, [*arguments, *args.node_option])
        self._serve = args.nodes

    def run(self) -> int:
        """Run until all is over; return the exit status of the job."""
        if self._server is None and self._lease is None:
            # Otherwise the guard of the program does this.
            threading.Thread(target=self._watch_server, name="gt-orphan", daemon=True).start()
        next_reading, is_asked = 0.0, False
        while True:
            if time.monotonic() >= next_reading:
                next_reading = time.monotonic() + READ_EVERY
                if self._has_ended():
                    return self._end(0)
                self._follow()
            if self.is_leaving.is_set() and not is_asked:
                is_asked = True
                print("gt cluster: the workers hand over what they have, and end", flush=True)
                self._nodes.drain()
            self._nodes.restart_killed()
            have_failed = self._nodes.have_failed()
            if have_failed is not None:
                # SLURM may send SIGTERM to the node programs alone: they have left then, too.
                if self.is_leaving.is_set() or not have_failed:
                    return self._leave()
                print("gt cluster: no node has workers any more", flush=True)
                return self._end(1)
            if not self._keep_server():
                return self._end(1)
            time.sleep(_EVERY)

    def _watch_server(self) -> None:
        """End the cluster when the job of its server is over, however that ended."""
        while True:
            time.sleep(_SERVER_EVERY)
            try:
                end_orphans(self._folder)
            except (ClusterError, OSError, ValueError) as error:
                print(f"gt cluster: {error}", flush=True)

    def _has_ended(self) -> bool:
        """Return whether the cluster has ended, by its record or the lease."""
        try:
            self._record = read_record(self._folder)
        except FileNotFoundError:
            # The folder is removed when a cluster has ended.
            return True
        except (OSError, ValueError) as error:
            print(f"gt cluster: {self._folder} cannot be read now: {error}", flush=True)
            return False
        if self._record.is_ended:
            return True
        if self._lease is not None:
            lease, watch = self._lease
            if watch.is_over(lease.read()):
                print("gt cluster: the program that began this cluster is gone", flush=True)
                return True
        return False

    def _follow(self) -> None:
        """Do what the record says: leave, or have workers on more or fewer nodes."""
        if self._record.find(self._args.number) is None:
            self.is_leaving.set()
        elif self._args.number == 0 and self._record.serve != self._serve:
            self._serve = self._record.serve
            self._nodes.serve(self._serve)

    def _start_server(self) -> ChildProcess:
        if self._args.restarts:
            (self._folder / "state").mkdir(mode=0o700, exist_ok=True)
        command = server_command(
            host="0.0.0.0",
            publish=str(self._folder / "address"),
            workers=self._args.expected,
            options=self._args.server_option,
        )
        # SLURM's SIGTERM is for all processes of a job; the server is to outlive the workers.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            return ChildProcess(command, key=self._key, log=self._folder / "logs" / "server.log")
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _keep_server(self) -> bool:
        """Start the server again if it has failed; return False if it does so repeatedly."""
        if self._server is None or self._server.exit_status() is None or self.is_leaving.is_set():
            return True
        status, words = self._server.exit_status(), self._server.output()
        print(
            f"gt cluster: error: the server has ended (exit status {status}){said(words)}",
            flush=True,
        )
        self._failures += 1
        # One that has never listened does not listen the next time.
        if self._failures >= _SERVER_TRIES or "listening at" not in words:
            return False
        self._server = self._start_server()
        return True

    def _leave(self) -> int:
        """End the server after the workers; have SLURM run the job again if it may."""
        restarted = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
        is_wanted = self._record.find(self._args.number) is not None and not self._has_ended()
        if not is_wanted or restarted >= self._args.restarts:
            return self._end(0)
        if self._server is not None:
            # Killed, it does not withdraw its address: clients wait for it at its next one.
            self._server.wait(0)
        job = int(os.environ["SLURM_JOB_ID"])
        state = commands.job_states(self._record.name).get(job)
        # Otherwise it has been preempted, and SLURM runs it again, or an operator has cancelled it.
        if state is not None and state.is_running:
            print("gt cluster: the job waits for its next allocation", flush=True)
            commands.run("scontrol", "requeue", str(job))
        return 0

    def _end(self, status: int) -> int:
        self._nodes.end()
        if self._server is not None:
            self._server.end()
        self._nodes.wait(_END_WITHIN)
        if self._server is not None:
            self._server.wait(_END_WITHIN)
            self._tell_others()
        return status

    def _tell_others(self) -> None:
        """Have the other jobs end, which have no server any more."""
        try:
            with changed_record(self._folder) as record:
                record.is_ended = True
        except OSError:
            pass  # The folder was removed.


def main(argv: list[str] | None = None) -> int:
    """Run a job until it is over; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.cluster.slurm.job", description="Run a job of a SLURM cluster."
    )
    parser.add_argument("folder", help="the cluster's folder, which all nodes share")
    parser.add_argument(
        "--number", type=at_least(0), default=0, help="the job's number: 0 has the server"
    )
    parser.add_argument("--nodes", type=at_least(1), default=1, help="the number of nodes")
    parser.add_argument("--workers", type=at_least(1), help="workers on each node")
    parser.add_argument(
        "--expected", type=at_least(0), default=0, help="the workers that sessions wait for"
    )
    parser.add_argument(
        "--lease", action="store_true", help="end when the program that began this is gone"
    )
    parser.add_argument(
        "--restarts", type=at_least(0), default=0, help="how often SLURM is to run the job again"
    )
    parser.add_argument("--server-option", action="append", default=[], help="for the server")
    parser.add_argument("--node-option", action="append", default=[], help="for node programs")
    args = parser.parse_args(argv)
    is_leaving = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_leaving.set())
    job = Job(args)
    job.is_leaving = is_leaving
    return job.run()


if __name__ == "__main__":
    sys.exit(main())
