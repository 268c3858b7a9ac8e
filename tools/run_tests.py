"""Run the parts of a group of tests: `make test` and `make test-all` run this.

Tests share the machine with others, and start many processes. The tests of a part that fail run
again, alone: those that pass then are listed at the end as unsteady, and the part does not fail.

At the end it prints the duration of each part and the 20 slowest tests. In CI (if `CI` is set) all
parts run even if one fails, and the group fails if a part takes 1.5 times as long as `budgets.txt`
allows.
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
from dataclasses import dataclass, field
from pathlib import Path

from suites import DIVIDED, ROOT, Part, environment, groups

REPORTS = ROOT / "target" / "test-reports"
SLOWEST = 20

#: The factor by which a part may exceed its budget in CI.
TOLERANCE = 1.5


#: The most failed tests that run again: if more fail, it is not by chance.
AGAIN = 5

#: The line of a Rust test that failed.
FAILED = re.compile(r"test (.*?)(?: - (?:should panic|compile fail|compile))? \.\.\. FAILED$")

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


@dataclass
class Outcome:
    """What became of a part: its exit status, the seconds of tests, and those that failed.

    `failed` is empty if it is not known which have failed; `passes` counts those that passed.
    """

    status: int
    seconds: list[tuple[float, str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    passes: int = 0


def run_cargo(part: Part) -> Outcome:
    """Run Rust tests, and print a line for each program, whose seconds are returned."""
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
    failed: list[str] = []
    passes = failures = 0
    is_killed = False
    assert process.stdout is not None
    with process:
        for line in process.stdout:
            if running := PROGRAM.match(line):
                name = f"{running[2]} {running[1]}" if running[1] else f"{running[3]} documentation"
                kept = []
            elif result := re.match(r"test result: (\w+)\. (.*) finished in ([\d.]+)s", line):
                found.append((float(result[3]), name))
                numbers = re.match(r"(\d+) passed; (\d+) failed", result[2])
                assert numbers is not None, line
                passes += int(numbers[1])
                failures += int(numbers[2])
                if not result[2].startswith("0 passed; 0 failed"):
                    print(f"  {name}: {result[1]}. {result[2]} {result[3]} s", flush=True)
                if result[1] != "ok":
                    print("".join(kept), flush=True)
            elif failure := FAILED.match(line):
                failed.append(failure[1])
                kept.append(line)
            elif not re.match(
                r"test .* ok$|\s+(Compiling|Finished|Downloaded|Fresh|Blocking)", line
            ):
                kept.append(line)
                # Such a program does not say which of its tests has failed.
                is_killed |= "process didn't exit successfully" in line
                if line.startswith(("error", "warning")):
                    print(line, end="", flush=True)
    if process.returncode:
        print("".join(kept[-200:]), flush=True)
    # Other output may have spoilt the line of a test: then it is not known which have failed.
    is_known = not is_killed and failures == len(failed)
    return Outcome(process.returncode, found, failed if is_known else [], passes)


def run_pytest(part: Part) -> Outcome:
    """Run Python tests."""
    report = REPORTS / f"{part.name.replace(' ', '-')}.xml"
    report.unlink(missing_ok=True)
    command = [*part.command, f"--junitxml={report}"]
    status = subprocess.run(command, cwd=ROOT, env=environment(part)).returncode
    if not report.exists():
        return Outcome(status)
    outcome = Outcome(status)
    has_crashed = False
    for case in xml.parse(report).iter("testcase"):
        name = f"{case.get('classname')}.{case.get('name')}"
        outcome.seconds.append((float(case.get("time", 0)), f"{part.name}: {name}"))
        wrong = [*case.findall("failure"), *case.findall("error")]
        if wrong:
            outcome.failed.append(name)
            has_crashed |= any("crashed while running" in (of.get("message") or "") for of in wrong)
        elif case.find("skipped") is None:
            outcome.passes += 1
    # A process that has crashed is a failure, whatever its test does alone.
    if has_crashed:
        outcome.failed = []
    return outcome


def run(part: Part) -> tuple[Outcome, list[str]]:
    """Run a part, and then, alone, those of its tests that have failed.

    Returns:
        What became of it, and the tests that passed alone only: if all did, the part passes.
    """
    is_rust = part.command[0] == "cargo"
    run_command = run_cargo if is_rust else run_pytest
    outcome = run_command(part)
    # A status other than that of failed tests says that some did not run.
    tests_failed = 101 if is_rust else 1
    if outcome.status != tests_failed or not 0 < len(outcome.failed) <= AGAIN:
        return outcome, []
    print(f"== {part.name}, again and alone: {', '.join(outcome.failed)}", flush=True)
    if is_rust:
        again = [*part.command, "--", "--test-threads", "1", "--exact", *outcome.failed]
    else:
        again = [word for word in part.command if word not in DIVIDED] + ["--last-failed"]
    second = run_command(Part(f"{part.name} again", again, part.environment))
    if second.status or second.passes < len(set(outcome.failed)):
        return outcome, []
    return Outcome(0, outcome.seconds), outcome.failed


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
    in_ci = bool(os.environ.get("CI"))
    took, tests, rows, unsteady = [], [], [], []
    for part in parts:
        print(f"== {part.name}", flush=True)
        began = time.monotonic()
        outcome, passed_alone = run(part)
        took.append((part.name, time.monotonic() - began, outcome.status))
        tests += outcome.seconds
        unsteady += passed_alone
        rows.append({"name": part.name, "seconds": took[-1][1], "tests": len(outcome.seconds)})
        if outcome.status and not in_ci:
            break
    (REPORTS / f"{args.group}.json").write_text(json.dumps(rows))
    is_kept = report(args.group, took, tests)
    for test in unsteady:
        print(f"UNSTEADY: {test} failed beside other tests and passed alone: mend it")
    if any(status for _, _, status in took):
        return 1
    return 0 if is_kept or not in_ci else 1


if __name__ == "__main__":
    sys.exit(main())
