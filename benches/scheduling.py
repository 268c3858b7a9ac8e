"""Count the machine instructions of scheduling per small addition over tcp (callgrind).

A server and a worker run under valgrind, and a client adds small tensors. The instructions of an
addition are counted by source files; those of the start are subtracted. GT must be built with debug
information, `strip = false` in pyproject.toml, and without link-time optimization:

    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_DEBUG=1 maturin develop --release
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from programs import Printing

#: The parts of scheduling, by parts of the paths of their files.
PARTS = {
    "turns: policies, queues of sessions and lanes, flow control": (
        "gt-policy/",
        "gt-worker/src/worker/run_queue.rs",
        "gt-worker/src/worker/in_flight.rs",
        "gt-dispatcher/src/scheduler.rs",
        "gt-dispatcher/src/shares/",
        "gt-dispatcher/src/flow.rs",
    ),
    "memory: admission, charges, frees": (
        "gt-worker/src/memory/",
        "gt-worker/src/device/charge.rs",
        "gt-worker/src/device/unspill.rs",
        "gt-worker/src/worker/limits.rs",
        "gt-worker/src/worker/shortage.rs",
        "gt-worker/src/worker/spill.rs",
    ),
}
ADDITIONS = 100
CLIENT = f"""
import gt, sys
gt.connect("localhost:" + sys.argv[1])
a, b = gt.ones(4), gt.ones(4)
for _ in range(int(sys.argv[2])):
    for _ in range({ADDITIONS}):
        c = a + b
    c.sum().item()
"""


def executed(folder: Path, port: str, rounds: int) -> tuple[Counter, Counter]:
    """Run some rounds; return the instructions of the server and of the worker by files."""
    processes = []
    for name, command in {
        "server": ["gt.server", "-p", port],
        "worker": ["gt.worker", "--host", "localhost", "-p", port, "--threads", "1"],
    }.items():
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / name}"]
        process = Printing(
            [*tool, sys.executable, "-m", *command],
            stderr=subprocess.DEVNULL,
        )
        processes.append(process)
        assert process.stdout.readline().startswith("gt "), f"the {name} does not start"
    environment = {**os.environ, "GT_AUTO_COMPILE": "0"}
    subprocess.run(
        [sys.executable, "-c", CLIENT, port, str(rounds)], env=environment, check=True, timeout=600
    )
    for process in reversed(processes):
        process.send_signal(signal.SIGTERM)
        process.wait(120)
    return by_files(folder / "server"), by_files(folder / "worker")


def by_files(path: Path) -> Counter:
    """Return the sums of a profile by source files, of inlined code by its original file."""
    names: dict[str, str] = {}
    counts: Counter = Counter()
    file, is_call = "", False
    for line in path.read_text().splitlines():
        if found := re.match(r"(fl|fi|fe|cfi|cfl)=\((\d+)\)(?: (.*))?$", line):
            kind, number, name = found.groups()
            if name:
                names[number] = name
            if not kind.startswith("c"):
                file = names[number]
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[+\-*\d]", line):
            if not is_call:
                counts[file] += int(line.split()[-1])
            is_call = False
    return counts


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", default="9777")
    parser.add_argument("--rounds", type=int, default=500)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        idle = executed(Path(folder), args.port, 0)
        busy = executed(Path(folder), args.port, args.rounds)
    total: Counter = Counter()
    for before, after in zip(idle, busy, strict=True):
        total += after
        total.subtract(before)
    if not any("gt-worker/" in name for name in total):
        sys.exit("GT has no debug information: build it as described at the top of this file")
    additions = args.rounds * ADDITIONS
    everything = sum(total.values())
    print("| server and worker, over tcp | instructions for an addition | part |")
    print("| --- | --- | --- |")
    print(f"| all | {everything / additions:,.0f} | |")
    for words, parts in PARTS.items():
        count = sum(count for name, count in total.items() if any(part in name for part in parts))
        print(f"| {words} | {count / additions:,.1f} | {100 * count / everything:.2f} % |")


if __name__ == "__main__":
    main()
