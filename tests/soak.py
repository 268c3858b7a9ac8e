"""Use a cluster for hours, and count everything that could grow.

    python tests/soak.py --hours 1

Two programs run all the time, one that trains and one that does a bit of everything, and others
come and go. What the server, the workers and the programs hold is counted every few seconds; it may
not grow beyond the first quarter of the time.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from leaks import Counts
from processes import cluster, run_python
from training import TRAINING, Training

MB = 1 << 20
#: Memory may vary by so much: allocators keep what they had.
SLACK = 24 * MB
WORKERS = 2

#: A bit of everything, again and again: shapes, errors, files, values of all sizes, new functions.
MIXED = """
import itertools, sys
import numpy as np
import gt

gt.connect(sys.argv[1])
folder = sys.argv[2]
kept = gt.randn(512, 512)
for step in itertools.count():
    if step % 100 == 0:
        print("step", step, flush=True)
    rows = 1 + step * 7 % 40
    x = gt.randn(rows, 16)
    y = (x @ gt.randn(16, 8)).relu()[:, : 1 + step % 8]
    y.sum().item()
    view = kept[step % 512, : rows]
    kept = kept * 0.99 + view.mean()
    sent = gt.from_numpy(np.full((rows, 1000), float(step), dtype="float32"))
    assert sent.numpy()[0, 0] == step
    if step % 20 == 0:
        large = gt.ones(1 << 20)
        assert large.numpy().sum() == 1 << 20
        try:
            gt.ones(2, 3) @ gt.ones(2, 3)
        except ValueError:
            pass
    if step % 200 == 0:
        gt.status()
        gt.checkpoint.save(folder + "/saved", {"kept": kept}).wait()
        loaded = gt.checkpoint.load(folder + "/saved")[0]["kept"]
        assert gt.equal(loaded, kept)
"""

#: A program that comes and goes.
SHORT = """
import sys
import gt
gt.connect(sys.argv[1])
x = gt.randn(256, 256, requires_grad=True)
(x @ x).sum().backward()
print(x.grad.shape[0])
"""


class Soak:
    """Processes, and what they held each time that it was counted."""

    def __init__(self, processes: dict[str, int], state: Path) -> None:
        self.processes, self.state = processes, state
        self.counts: dict[str, list[Counts]] = {name: [] for name in processes}
        self.journal: list[int] = []

    def count(self) -> None:
        for name, pid in self.processes.items():
            self.counts[name].append(Counts.of(pid))
        sizes = [path.stat().st_size for path in self.state.glob("journal-*")]
        self.journal.append(sum(sizes))

    def report(self) -> list[str]:
        """Print what was held; give what has grown."""
        grown = []
        print(
            f"{'':10}{'memory':>22}{'descriptors':>16}{'threads':>12}{'blocks':>12}{'shared':>20}"
        )
        for name, all_counts in self.counts.items():
            quarter = max(1, len(all_counts) // 4)
            # What is under way comes and goes, and caches fill: what has grown is never as little
            # again as it was at the most.
            first, last = of_each(max, all_counts[:quarter]), of_each(min, all_counts[-quarter:])
            print(
                f"{name:10}"
                f"{first.memory / MB:9.1f} to {last.memory / MB:6.1f} MB"
                f"{first.descriptors:9} to {last.descriptors:3}"
                f"{first.threads:5} to {last.threads:3}"
                f"{first.blocks:5} to {last.blocks:3}"
                f"{first.shared / MB:8.1f} to {last.shared / MB:5.1f} MB"
            )
            grown += [f"{name} has more {text}" for text in first.excess(last, SLACK)]
        print(
            f"journal: {self.journal[0] / MB:.1f} MB at first, {max(self.journal) / MB:.1f} at most"
        )
        if max(self.journal) > 1024 * MB:
            grown.append(f"the journal has {max(self.journal)} bytes")
        return grown


def of_each(choose: Callable[..., int], counts: list[Counts]) -> Counts:
    """Give the most or the least of each that was held."""
    names = Counts.__dataclass_fields__
    return Counts(*(choose(getattr(count, name) for count in counts) for name in names))


def come_and_go(
    address: str, end: threading.Event, ended: list[subprocess.CompletedProcess]
) -> None:
    while not end.is_set():
        ended.append(run_python(SHORT, address))


def soak(seconds: float, interval: float = 5.0) -> list[str]:
    """Use a cluster for so long; print an account, and give what has grown."""
    end, ended = threading.Event(), []
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        root = ["--data-root", folder]
        options = ["--state", str(state), *root]
        with cluster(WORKERS, *options, worker_options=root) as (address, processes):
            programs = [
                Training(TRAINING, address, 10**12),
                Training(MIXED, address, folder),
            ]
            coming = threading.Thread(target=come_and_go, args=(address, end, ended))
            try:
                for program in programs:
                    program.wait_for(100)
                coming.start()
                names = ["server", *(f"worker {number}" for number in range(WORKERS))]
                names += ["training", "mixed"]
                all_processes: list[subprocess.Popen] = [*processes, *(p.process for p in programs)]
                pids = [process.pid for process in all_processes]
                counted = Soak(dict(zip(names, pids, strict=True)), state)
                until = time.monotonic() + seconds
                while time.monotonic() < until:
                    time.sleep(interval)
                    for program in programs:
                        assert program.process.poll() is None, program.errors
                    counted.count()
            finally:
                end.set()
                if coming.is_alive():
                    coming.join()
                for program in programs:
                    program.kill()
    wrong = [done for done in ended if done.stdout != "256\n"]
    assert ended and not wrong, wrong[:1]
    steps = [int(program.lines[-1].split()[1]) for program in programs]
    longest = max(program.longest_gap() for program in programs)
    print(
        f"{seconds / 3600:.2f} hours: {steps[0]} steps of training, {steps[1]} of everything, "
        f"{len(ended)} programs that came and went; the longest pause {longest:.2f} s"
    )
    return counted.report()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=1.0)
    args = parser.parse_args()
    grown = soak(args.hours * 3600)
    print("\n".join(grown) or "nothing has grown")
    return len(grown) > 0


if __name__ == "__main__":
    sys.exit(main())
