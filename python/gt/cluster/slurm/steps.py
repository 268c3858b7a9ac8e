"""The steps of a SLURM job in which the workers of its nodes run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Sequence

from gt._processes import DRAIN
from gt.cluster.process import end_input, send_line

#: How often a node program that was killed is started again.
_TRIES = 3

#: How `srun` reports tasks that have ended: "srun: error: n2: task 1: Killed".
_ENDED = re.compile(rb"srun: error: (?P<node>[^\s:,\[]+): task (?P<task>\d+): (?P<how>.*)")

#: How it reports one that has ended itself: its workers cannot be run.
_BY_ITSELF = b"Exited with exit code 1"


def killed_task(line: bytes) -> tuple[str, int] | None:
    """Return the node and the number of a task that was killed, from a line of `srun`."""
    found = _ENDED.search(line)
    if found is None or found["how"].strip() == _BY_ITSELF:
        return None
    return found["node"].decode(), int(found["task"])


class Step:
    """A step of `srun` with a task on each of some nodes. What it reads, each task reads."""

    def __init__(self, options: Sequence[str], arguments: Sequence[str]):
        """Start it."""
        command = [
            *("srun", "--overlap", "--ntasks-per-node=1", *options),
            *("--kill-on-bad-exit=0", "--wait=0", "--no-kill", "--mpi=none", "--cpu-bind=none"),
        ]
        # Without it, a task has one core of those that the job has on its node.
        cores = os.environ.get("SLURM_CPUS_PER_TASK")
        if cores:
            command.append(f"--cpus-per-task={cores}")
        command += [sys.executable, "-m", "gt.cluster.slurm.node", *arguments]
        self.killed: list[tuple[str, int]] = []
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        threading.Thread(target=self._copy, name="gt-srun", daemon=True).start()

    def exit_status(self) -> int | None:
        """Return the exit status of the step, or None while a node program runs."""
        return self._process.poll()

    def send(self, line: str) -> None:
        """Send a line to all node programs."""
        send_line(self._process, line)

    def end(self) -> None:
        """Have all end now; :meth:`wait` waits until they have."""
        end_input(self._process)

    def wait(self, limit: float) -> None:
        """Wait until all have ended; after the limit in seconds they are killed."""
        try:
            self._process.wait(limit)
        except subprocess.TimeoutExpired:
            # At the first SIGTERM, `srun` kills the tasks.
            self._process.terminate()
            try:
                self._process.wait(1.0)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def _copy(self) -> None:
        """Write what `srun` says into the job's log, and note which tasks were killed."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            os.write(2, line)
            task = killed_task(line)
            if task is not None:
                self.killed.append(task)


class NodePrograms:
    """The node programs of a job: a step for all, and one for each that is started again."""

    def __init__(self, nodes: int, arguments: Sequence[str]):
        """Start them."""
        self._arguments = arguments
        self._steps = [Step([f"--nodes={nodes}", f"--ntasks={nodes}"], arguments)]
        self._tries: dict[int, int] = {}
        self._numbers: dict[Step, int] = {}
        self._replaced: set[Step] = set()
        self._said = ""
        self._is_leaving = False

    def restart_killed(self) -> None:
        """Start those again that were killed, by the system or by hand."""
        if self._is_leaving:
            return
        for step in list(self._steps):
            while step.killed:
                node, task = step.killed.pop()
                number = self._numbers.pop(step, task)
                self._tries[number] = self._tries.get(number, 0) + 1
                if self._tries[number] > _TRIES:
                    print(f"gt cluster: error: node {node} is given up", flush=True)
                    continue
                print(f"gt cluster: the workers of {node} are started again", flush=True)
                options = ["--nodes=1", "--ntasks=1", f"--nodelist={node}"]
                again = Step(options, [*self._arguments, "--number", str(number)])
                self._numbers[again] = number
                self._replaced.add(step)
                self._steps.append(again)
                if self._said:
                    again.send(self._said)

    def have_failed(self) -> bool | None:
        """Return whether not all have ended in good order; None while one runs."""
        statuses = [step.exit_status() for step in self._steps]
        if any(status is None for status in statuses) or any(step.killed for step in self._steps):
            return None
        # A step whose task was killed has failed; the task that replaced that counts.
        return max(bool(step.exit_status()) for step in self._steps if step not in self._replaced)

    def serve(self, nodes: int) -> None:
        """Have workers run on the first nodes alone; those of others are drained."""
        self._said = f"serve {nodes}"
        self._send(self._said)

    def drain(self) -> None:
        """Have all hand over what they have, and end."""
        self._is_leaving = True
        self._send(DRAIN)

    def end(self) -> None:
        """Have all end now; :meth:`wait` waits until they have."""
        self._is_leaving = True
        for step in self._steps:
            step.end()

    def wait(self, limit: float) -> None:
        """Wait until all have ended; after the limit in seconds they are killed."""
        for step in self._steps:
            step.wait(limit)

    def _send(self, line: str) -> None:
        for step in self._steps:
            step.send(line)
