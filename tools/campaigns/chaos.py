"""Train while workers, the server and the program are killed, stopped or disconnected at random.

    python tools/campaigns/chaos.py --moments 1000 --seed 0 --workers 3

A seed chooses the events and their moments. Each program must end with the parameters of an
undisturbed run, bit for bit; no program may pause for longer than `LONGEST`; and no session, memory
or process may be left at the end. Workers are lost one at a time, since a worker's values have a
copy on one other worker.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from leaks import Counts
from processes import cluster, run_program
from proxy import Proxy
from training import GPT, SHARDED, TRAINING, Training, start_server, start_worker, undisturbed

#: How long a program may pause, in seconds: a silent worker is declared lost after 8 at most.
LONGEST = 10

#: Programs, each with its number of steps.
PROGRAMS = {TRAINING: 1200, SHARDED: 1200, GPT: 200}

#: Events: a worker is killed, stopped, or joins; the server is killed, or stopped for a while
#: ("pause"); the program's connection is closed, or silent for a while; the program is stopped for
#: a while ("doze").
KINDS = "kill kill cut cut silence join stop server server pause doze".split()


class Chaos:
    """A server and workers, and the events that disturb them."""

    def __init__(
        self, chance: random.Random, address: str, processes: list, proxy: Proxy, state: Path
    ) -> None:
        self.chance, self.address, self.proxy, self.state = chance, address, proxy, state
        self.server, *self.workers = processes
        self.count = len(self.workers)
        self.processes = processes
        self.stopped: list[subprocess.Popen] = []
        self.started = 0
        self.quiet_until = 0.0

    def happen(self, program: subprocess.Popen) -> str:
        """Disturb a program or the cluster; return the kind of the event."""
        what = self.chance.choice(KINDS)
        if self.stopped and what in ("server", "pause", "stop"):
            what = "kill"
        if what == "cut":
            self.proxy.cut()
        elif what == "silence":
            # Some of these silences are longer than the timeout of a link.
            self.proxy.hold()
            time.sleep(0.5 + 6.5 * self.chance.random())
            self.proxy.let_go()
        elif what in ("pause", "doze"):
            sleeper = self.server if what == "pause" else program
            sleeper.send_signal(signal.SIGSTOP)
            time.sleep(2)
            sleeper.send_signal(signal.SIGCONT)
        elif what == "server":
            self._end(self.server)
            self.server = start_server(self.address, self.state, "--insecure")
            self.processes.insert(0, self.server)
            # One event at a time: workers reconnect within a second.
            self.quiet_until = time.monotonic() + 1
        elif what == "join":
            self._join()
        elif what == "stop":
            victim = self._victim()
            victim.send_signal(signal.SIGSTOP)
            self.stopped.append(victim)
            self.quiet_until = time.monotonic() + LONGEST
            self._join()
        else:
            self._end(self._victim())
            self._join()
        return what

    def is_waiting(self) -> bool:
        """Return whether the last event is still in progress: a stopped worker is not lost yet."""
        return time.monotonic() < self.quiet_until

    def settle(self) -> None:
        """Restore the number of workers of an undisturbed run, on which the bits of sums depend."""
        self.quiet_until = 0.0
        while self.stopped:
            self._end(self.stopped.pop())
        while len(self.workers) > self.count:
            self._end(self._victim())

    def _victim(self) -> subprocess.Popen:
        return self.workers.pop(self.chance.randrange(len(self.workers)))

    def _end(self, process: subprocess.Popen) -> None:
        process.kill()
        process.communicate()
        self.processes.remove(process)

    def _join(self) -> None:
        self.started += 1
        worker = start_worker(self.address, f"new{self.started}", "--insecure")
        self.workers.append(worker)
        self.processes.append(worker)


def children() -> set[str]:
    """Return the ids of this process's children."""
    tasks = Path("/proc/self/task").iterdir()
    return {child for task in tasks for child in (task / "children").read_text().split()}


def campaign(seed: int, moments: int, workers: int = 2) -> str:
    """Run programs until `moments` events have happened; return a summary.

    Raises:
        AssertionError: A program ended with other numbers, paused for too long or left something
            behind; the message names the seed.
    """
    chance = random.Random(seed)
    expected = {name: undisturbed(name, workers, steps) for name, steps in PROGRAMS.items()}
    happened: list[str] = []
    longest = 0.0
    others = children()
    with (
        tempfile.TemporaryDirectory() as state,
        cluster(workers, "--insecure", "--state", state, worker_options=["--insecure"]) as (
            address,
            processes,
        ),
    ):
        proxy = Proxy(int(address.rsplit(":", 1)[1]))
        chaos = Chaos(chance, address, processes, proxy, Path(state))
        before: dict[str, Counts] = {}
        while len(happened) < moments:
            name = chance.choice(list(PROGRAMS))
            options = ("--insecure", "--every", 10)
            training = Training(name, f"127.0.0.1:{proxy.port}", PROGRAMS[name], *options)
            try:
                training.wait_for(0)
                while training.process.poll() is None:
                    time.sleep(0.2 + 1.5 * chance.random())
                    if training.process.poll() is None and not chaos.is_waiting():
                        happened.append(chaos.happen(training.process))
                where = (f"seed {seed}", name, happened[-6:], training.errors[-4:])
                assert training.end() == expected[name], where
                longest = max(longest, training.longest_gap())
                assert longest < LONGEST, (where, longest)
            finally:
                training.process.kill()
                chaos.settle()
            time.sleep(0.5)
            now = {"server": Counts.of(chaos.server.pid)}
            now |= {f"worker {at}": Counts.of(it.pid) for at, it in enumerate(chaos.workers)}
            before = before or now
        # The processes may be new ones; each holds no more than the one before the first event.
        for name, counts in now.items():
            excess = before[name].excess(counts, 32 << 20)
            assert excess == [], (f"seed {seed}", name, excess)
        left = run_program("recovery/wait_until_free", address)
        assert left.stdout == "1 session, 0 bytes\n", (f"seed {seed}", left)
        proxy.close()
    assert children() == others, (f"seed {seed}", "processes are left")
    kinds = ", ".join(f"{happened.count(kind)} x {kind}" for kind in sorted(set(happened)))
    account = f"{workers} workers, {len(happened)} moments ({kinds})"
    return f"{account}; the longest pause {longest:.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--moments", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    print(campaign(args.seed, args.moments, args.workers))


if __name__ == "__main__":
    main()
