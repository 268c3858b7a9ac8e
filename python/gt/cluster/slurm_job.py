"""`python -m gt.cluster.slurm_job`: a job of a SLURM cluster, on its first node.

It runs the server, if the job has it, and one `srun` step with a task for the workers of each node.
At SIGTERM (the wall time is near), or when the cluster's record does not name this job any more,
the workers hand over what they have, and the job ends. When the record says that the cluster has
ended, or the lease of the program that began it is over, all end at once.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from gt._processes import DRAIN, at_least
from gt.cluster import slurm_commands
from gt.cluster.errors import said
from gt.cluster.process import ChildProcess
from gt.cluster.programs import server_command
from gt.cluster.slurm_record import READ_EVERY, Lease, LeaseWatch, read_record

#: How often processes are looked at, in seconds.
_EVERY = 0.1

#: How long the server and the node programs may take to end at once, in seconds.
_END_WITHIN = 3.0

#: How often a server that fails is started again.
_SERVER_TRIES = 3


class NodePrograms:
    """The step of `srun` with a task on each node. What it reads, each task reads."""

    def __init__(self, nodes: int, arguments: list[str]):
        """Start the step."""
        command = [
            *("srun", "--overlap", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"),
            *("--kill-on-bad-exit=0", "--wait=0", "--no-kill", "--mpi=none", "--cpu-bind=none"),
            *(sys.executable, "-m", "gt.cluster.slurm_node", *arguments),
        ]
        # Without --cpus-per-task, srun gives a task one core of those that the job has.
        cores = os.environ.get("SLURM_CPUS_PER_TASK")
        if cores:
            command.insert(1, f"--cpus-per-task={cores}")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE)

    def exit_status(self) -> int | None:
        """Return the exit status of the step, or None while a node program runs."""
        return self._process.poll()

    def send(self, line: str) -> None:
        """Send a line to all node programs."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # All have ended.

    def end(self) -> None:
        """Have all end now; :meth:`wait` waits until they have."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass

    def wait(self, limit: float) -> None:
        """Wait until all have ended; after the limit in seconds they are killed."""
        try:
            self._process.wait(limit)
        except subprocess.TimeoutExpired:
            # The first SIGTERM has `srun` kill the tasks.
            self._process.terminate()
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()


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
        arguments += ["--logs", str(self._folder / "logs")]
        if args.workers:
            arguments += ["--workers", str(args.workers)]
        if args.restarts:
            arguments += ["--state", str(self._folder / "state" / f"worker-{args.number}")]
        self._nodes = NodePrograms(args.nodes, [*arguments, *args.node_option])
        self._serve = args.nodes

    def run(self) -> int:
        """Run until all is over; return the exit status of the job."""
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
                self._nodes.send(DRAIN)
            if self._nodes.exit_status() is not None:
                if self.is_leaving.is_set():
                    return self._leave()
                print("gt cluster: no node has workers any more", flush=True)
                return self._end(1)
            if not self._keep_server():
                return self._end(1)
            time.sleep(_EVERY)

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
            self._nodes.send(f"serve {self._serve}")

    def _start_server(self) -> ChildProcess:
        options = self._args.server_option
        if self._args.restarts:
            (self._folder / "state").mkdir(mode=0o700, exist_ok=True)
        command = server_command(
            host="0.0.0.0",
            publish=str(self._folder / "address"),
            workers=self._args.nodes * (self._args.workers or 1),
            options=options,
        )
        return ChildProcess(command, key=self._key, log=self._folder / "logs" / "server.log")

    def _keep_server(self) -> bool:
        """Start the server again if it has failed; return False if it does so repeatedly."""
        if self._server is None or self._server.exit_status() is None or self.is_leaving.is_set():
            return True
        status, words = self._server.exit_status(), said(self._server.output())
        print(f"gt cluster: the server has ended (exit status {status}){words}", flush=True)
        self._failures += 1
        # One that has never listened does not listen the next time.
        if self._failures >= _SERVER_TRIES or "listening at" not in words:
            return False
        self._server = self._start_server()
        return True

    def _leave(self) -> int:
        """End the server after the workers; have SLURM run the job again if it may."""
        self._end(0)
        restarted = int(os.environ.get("SLURM_RESTART_COUNT") or 0)
        if restarted < self._args.restarts and self._record.find(self._args.number) is not None:
            job = int(os.environ["SLURM_JOB_ID"])
            state = slurm_commands.job_states(self._record.name).get(job)
            # One that an operator has cancelled stays so.
            if state is not None and state.is_running:
                print("gt cluster: the job waits for its next allocation", flush=True)
                slurm_commands.run("scontrol", "requeue", str(job))
        return 0

    def _end(self, status: int) -> int:
        self._nodes.end()
        if self._server is not None:
            self._server.end()
        self._nodes.wait(_END_WITHIN)
        if self._server is not None:
            self._server.wait(_END_WITHIN)
        return status


def main(argv: list[str] | None = None) -> int:
    """Run a job until it is over; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.cluster.slurm_job", description="Run a job of a SLURM cluster."
    )
    parser.add_argument("folder", help="the cluster's folder, which all nodes share")
    parser.add_argument(
        "--number", type=at_least(0), default=0, help="the job's number: 0 has the server"
    )
    parser.add_argument("--nodes", type=at_least(1), default=1, help="the number of nodes")
    parser.add_argument("--workers", type=at_least(1), help="workers on each node")
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
