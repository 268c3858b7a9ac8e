"""Run the parts of a group of tests: `make test` and `make test-all` run this.

At the end it prints the duration of each part and the 20 slowest tests. In CI (if `CI` is set) the
group fails if a part takes 1.5 times as long as `budgets.txt` allows.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as xml
from pathlib import Path

from suites import ROOT, Part, environment, groups

REPORTS = ROOT / "target" / "test-reports"
SLOWEST = 20

#: The factor by which a part may exceed its budget in CI.
TOLERANCE = 1.5


#: The line that cargo prints before it runs a test program.
PROGRAM = re.compile(r"\s+(?:Running (?:unittests )?(\S+) \(.*?([\w-]+)-\w+\)|Doc-tests (\S+))")


def budgets() -> dict[str, float]:
    """Return the seconds that each part may take."""
    found = {}
    for line in (Path(__file__).parent / "budgets.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, seconds = line.rsplit(maxsplit=1)
            found[name] = float(seconds)
    return found


def run_cargo(part: Part) -> tuple[int, list[tuple[float, str]]]:
    """Run Rust tests, and print a line for each program.

    Returns:
        The exit status, and the seconds of each program.
    """
    process = subprocess.Popen(
        part.command,
        cwd=ROOT,
        env=environment(part),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    name = ""
    found: list[tuple[float, str]] = []
    kept: list[str] = []
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if running := PROGRAM.match(line):
                name = f"{running[2]} {running[1]}" if running[1] else f"{running[3]} documentation"
                kept = []
            elif result := re.match(r"test result: (\w+)\. (.*) finished in ([\d.]+)s", line):
                found.append((float(result[3]), name))
                if not result[2].startswith("0 passed; 0 failed"):
                    print(f"  {name}: {result[1]}. {result[2]} {result[3]} s", flush=True)
                if result[1] != "ok":
                    print("".join(kept), flush=True)
            elif not re.match(
                r"test .* ok$|\s+(Compiling|Finished|Downloaded|Fresh|Blocking)", line
            ):
                kept.append(line)
                if line.startswith(("error", "warning")):
                    print(line, end="", flush=True)
    if process.returncode:
        print("".join(kept[-200:]), flush=True)
    return process.returncode, found


def run_pytest(part: Part) -> tuple[int, list[tuple[float, str]]]:
    """Run Python tests; return the exit status and the seconds of each test."""
    report = REPORTS / f"{part.name.replace(' ', '-')}.xml"
    report.unlink(missing_ok=True)
    command = [*part.command, f"--junitxml={report}"]
    status = subprocess.run(command, cwd=ROOT, env=environment(part)).returncode
    if not report.exists():
        return status, []
    cases = xml.parse(report).iter("testcase")
    return status, [
        (float(case.get("time", 0)), f"{part.name}: {case.get('classname')}.{case.get('name')}")
        for case in cases
    ]


def report(name: str, took: list[tuple[str, float, int]], tests: list[tuple[float, str]]) -> bool:
    """Print the slowest tests and the duration of parts; return whether all kept their budgets."""
    print(f"\nslowest of {len(tests):,} in {name}:")
    for seconds, test in sorted(tests, reverse=True)[:SLOWEST]:
        print(f"  {seconds:7.2f} s  {test}")
    allowed = budgets()
    is_kept = True
    print(f"\nparts of {name}:")
    for part, seconds, status in took:
        budget = allowed.get(part)
        words = "no budget" if budget is None else f"budget {budget:.0f} s"
        if budget is not None and seconds > TOLERANCE * budget:
            words += ", EXCEEDED by more than half"
            is_kept = False
        print(f"  {seconds:7.1f} s  {part} ({words}){' FAILED' if status else ''}")
    print(f"  {sum(seconds for _, seconds, _ in took):7.1f} s  in all")
    return is_kept


def main() -> int:
    """Run a group; return the exit status."""
    table = groups()
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("group", choices=table)
    parser.add_argument("--only", metavar="PART", action="append", help="run only this part")
    args = parser.parse_args()
    parts = [part for part in table[args.group] if not args.only or part.name in args.only]
    if not parts:
        names = ", ".join(part.name for part in table[args.group])
        parser.error(f"there is no part {args.only}, expected some of: {names}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    took, tests, rows = [], [], []
    for part in parts:
        print(f"== {part.name}", flush=True)
        began = time.monotonic()
        run = run_cargo if part.command[0] == "cargo" else run_pytest
        status, found = run(part)
        took.append((part.name, time.monotonic() - began, status))
        tests += found
        rows.append({"name": part.name, "seconds": took[-1][1], "tests": len(found)})
        if status:
            break
    (REPORTS / f"{args.group}.json").write_text(json.dumps(rows))
    is_kept = report(args.group, took, tests)
    if took[-1][2]:
        return 1
    return 0 if is_kept or not os.environ.get("CI") else 1


if __name__ == "__main__":
    sys.exit(main())
