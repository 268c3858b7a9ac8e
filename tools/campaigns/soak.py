"""Use a cluster for hours, and count everything that could grow.

    python tools/campaigns/soak.py --hours 1

Two programs run all the time, one that trains and one that uses many features, and short programs
run one after the other. The resources of the server, the workers and the two programs are counted
every few seconds; at the end they must not exceed those of the first quarter of the time.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))
from leaks import Counts
from processes import cluster, run_program
from training import TRAINING, Training

MB = 1 << 20
#: Memory may grow by this many bytes: allocators keep freed memory.
SLACK = 24 * MB
WORKERS = 2


class Soak:
    """Processes, and the samples of the resources that they hold."""

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
        """Print the samples; return a line for each resource that has grown."""
        grown = []
        print(
            f"{'':10}{'memory':>22}{'descriptors':>16}{'threads':>12}{'blocks':>12}{'shared':>20}"
        )
        for name, all_counts in self.counts.items():
            quarter = max(1, len(all_counts) // 4)
            # Work in flight varies and caches fill. A resource has grown if its lowest count at
            # the end exceeds its highest count at the beginning.
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
    """Return the highest or the lowest count of each resource."""
    names = Counts.__dataclass_fields__
    return Counts(*(choose(getattr(count, name) for count in counts) for name in names))


def come_and_go(
    address: str, end: threading.Event, ended: list[subprocess.CompletedProcess]
) -> None:
    while not end.is_set():
        ended.append(run_program("soak/gradient", address))


def soak(seconds: float, interval: float = 5.0) -> list[str]:
    """Use a cluster; print a summary, and return a line for each resource that has grown."""
    end = threading.Event()
    ended: list[subprocess.CompletedProcess[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        root = ["--data-root", folder]
        options = ["--state", str(state), *root]
        with cluster(WORKERS, *options, worker_options=root) as (address, processes):
            programs = [
                Training(TRAINING, address, 10**12),
                Training("soak/everything", address, folder),
            ]
            coming = threading.Thread(target=come_and_go, args=(address, end, ended))
            try:
                for program in programs:
                    program.wait_for(100)
                coming.start()
                names = ["server", *(f"worker {number}" for number in range(WORKERS))]
                names += ["training", "everything"]
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
        f"{len(ended)} short programs; the longest pause {longest:.2f} s"
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
