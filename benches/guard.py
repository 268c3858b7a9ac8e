"""Count the machine instructions of loops, and compare them with the recorded counts.

    make speed-guard                       count; fail if a loop is 1.5 % above its record
    make speed-guard RECORD=1              count, and record lower counts
    make speed-guard RECORD=1 REASON=...   record higher counts as well, with the reason

A count is that of one round of a loop, by thread (`client` is Python's) and by crate. The counts of
other threads vary between runs, and have a larger tolerance than the client's.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from callgrind import command, profile

HERE = Path(__file__).resolve().parent
RECORD = HERE / "guard.json"

#: The interpreter's own instructions are counted as well, and differ between its versions.
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

#: The tolerance of a loop above its record. It is larger on another kind of processor, where the C
#: library chooses other functions to copy memory.
TOLERANCE = 0.015
TOLERANCE_ELSEWHERE = 0.08

#: The tolerance of threads other than the client's: the number of batches that their commands
#: arrive in depends on timing.
OTHERS = 0.2

#: The number of times that a loop above its record is counted again.
AGAIN = 2

#: Programs: the side, environment variables and loops of each. Hot paths are detected unless
#: `GT_AUTO_COMPILE` is 0.
COLD = {"GT_AUTO_COMPILE": "0"}
PROGRAMS = {
    "": (
        "embedded",
        {},
        ("addition_1000", "round_trip", "sum_item", "item", "fetch_4_mb", "upload"),
    ),
    "training": ("embedded", {}, ("training_20", "training_item", "backward", "layers")),
    "generation": ("embedded", {}, ("generation",)),
    "sharded": ("embedded", {}, ("sharded_slices",)),
    "cold": ("embedded", COLD, ("addition_1000", "training_20")),
    "device": ("torch", {}, ("device_addition_1000", "device_sum_item", "device_upload")),
}


def count(side: str, variables: dict[str, str], loop: str) -> dict:
    """Return the instructions of one round of a loop: in total, by thread and by crate."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GT_")}
    environment = {**clean, **variables, "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = [sys.executable, str(HERE / "processes" / "guard.py"), side, loop]
        done = subprocess.run(
            # On a single processor the engine has one thread.
            ["taskset", "-c", "0", *command(folder), *program],
            env=environment,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
        executed = profile(folder)
    rounds = int(done.stdout.split()[-1])
    threads: dict[str, float] = defaultdict(float)
    crates: dict[str, float] = defaultdict(float)
    for (thread, crate), instructions in executed.items():
        threads["client" if thread == 1 else "others"] += instructions / rounds
        crates[crate] += instructions / rounds
    total = sum(threads.values())
    return {
        "total": round(total),
        "processor": processor(),
        "threads": {name: round(of) for name, of in falling(threads)},
        "crates": {name: round(of) for name, of in falling(crates) if of > 0.005 * total},
    }


def falling(counts: dict[str, float]) -> list[tuple[str, float]]:
    """Return counts with their names, the largest first."""
    return sorted(counts.items(), key=lambda pair: -pair[1])


def least(side: str, variables: dict[str, str], loop: str, record: dict | None) -> dict:
    """Count a loop, repeatedly if it is above its record; return the lowest count.

    Counts vary with the interleaving of threads.
    """
    counts = count(side, variables, loop)
    for _ in range(AGAIN):
        if record is None or is_kept(counts, record):
            break
        counts = min(counts, count(side, variables, loop), key=lambda one: one["total"])
    return counts


def measure(only: list[str], known: dict[str, dict]) -> dict[str, dict]:
    """Count the loops of all programs, or the named ones, and print them beside their records."""
    found = {}
    for program, (side, variables, loops) in PROGRAMS.items():
        for loop in loops:
            name = f"{loop} ({program})" if variables else loop
            if only and name not in only:
                continue
            if side == "torch" and importlib.util.find_spec("torch") is None:
                print(f"SKIPPED: {name}: PyTorch is not installed", flush=True)
                continue
            found[name] = least(side, variables, loop, known.get(name))
            compare(name, found[name], known.get(name))
    return found


def processor() -> str:
    """Return the model name of the processor."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.machine()


def is_kept(counts: dict, record: dict | None) -> bool:
    """Return whether a loop's count is within the tolerance of its record."""
    if record is None:
        return False
    is_here = record["processor"] == processor()
    tolerance = TOLERANCE if is_here else TOLERANCE_ELSEWHERE
    (client, others), (own, rest) = (
        [of["threads"].get(name, 0) for name in ("client", "others")] for of in (counts, record)
    )
    # A client that waits for a value does a varying part of the other threads' work.
    if counts["total"] <= (1 + tolerance) * record["total"]:
        return True
    room = OTHERS * rest + 0.02 * record["total"]
    return client <= (1 + tolerance) * own and others <= rest + room


def compare(name: str, counts: dict, record: dict | None) -> None:
    """Print a loop's count beside its record, and the threads and crates with more instructions."""
    if record is None:
        print(f"{name:24} {counts['total']:12,}  no record", flush=True)
        return
    share = 100 * (counts["total"] / record["total"] - 1)
    mark = "" if is_kept(counts, record) else "  MORE"
    print(f"{name:24} {counts['total']:12,}  {share:+6.2f} %{mark}", flush=True)
    for kind in ("threads", "crates") if mark else ():
        for part in {**record[kind], **counts[kind]}:
            more = counts[kind].get(part, 0) - record[kind].get(part, 0)
            if more > 0.002 * record["total"]:
                print(f"    {part:20} {more:+12,}", flush=True)


def record(found: dict[str, dict], known: dict[str, dict], reason: str | None) -> None:
    """Write lower counts into the file, and with a reason higher ones as well."""
    for name, counts in found.items():
        before = known.get(name)
        kept = (before or {}).get("reasons", [])
        if before is not None and counts["total"] >= before["total"]:
            if not reason:
                continue
            kept = [*kept, f"{before['total']:,} to {counts['total']:,}: {reason}"]
        known[name] = {**counts, **({"reasons": kept} if kept else {})}
    RECORD.write_text(json.dumps({"python": PYTHON, "loops": known}, indent=1) + "\n")


def main() -> int:
    """Count, compare and record; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="LOOP")
    parser.add_argument("--record", action="store_true", help="record lower counts")
    parser.add_argument("--reason", help="record higher counts as well, for this reason")
    args = parser.parse_args()
    file: dict[str, Any] = {"python": PYTHON, "loops": {}}
    if RECORD.exists():
        file = json.loads(RECORD.read_text())
    if file["python"] != PYTHON:
        print(f"SKIPPED: the recorded counts are for Python {file['python']}, this is {PYTHON}")
        return 0
    known = file["loops"]
    found = measure(args.only, known)
    if args.record:
        record(found, known, args.reason)
        return 0
    kept = [is_kept(counts, known.get(name)) for name, counts in found.items()]
    if not all(kept):
        print(
            "\nmore instructions than recorded: reduce them, or record them with a reason:\n"
            "  make speed-guard RECORD=1 REASON='...'"
        )
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
