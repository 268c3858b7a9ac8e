"""Measure builds, tests and wheels in a fresh clone and write docs/building.md.

Each row is one run on this machine, which should be idle: builds take too long to repeat. Processor
time is what the kernel counted for the child processes.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARK = "<!-- {name}: make build-report -->"

#: (crate, the file of it that is changed, the goal for `make build PROFILE=edit` in seconds)
CHANGES = [
    ("gt-dispatcher", "crates/gt-dispatcher/src/scheduler.rs", 30),
    ("gt-client", "crates/gt-client/src/tape/mod.rs", 30),
    ("gt-worker", "crates/gt-worker/src/lane/queue.rs", 60),
    ("gt-engine-native", "crates/gt-engine-native/src/binary.rs", 60),
    ("gt-python", "crates/gt-python/src/lib.rs", 60),
    ("gt-ir", "crates/gt-ir/src/liveness.rs", 120),
]


def timed(command: str, folder: Path) -> tuple[float, float]:
    """Run a command; return its seconds and its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GT_", "CARGO_", "VIRTUAL_ENV", "MAKE"))
    }
    # Empty caches, so that everything is downloaded, with the mirrors in the settings of cargo.
    cache = folder.parent
    (cache / "cargo").mkdir(exist_ok=True)
    for settings in (Path.home() / ".cargo").glob("config*"):
        shutil.copy(settings, cache / "cargo")
    clean |= {"CARGO_HOME": str(cache / "cargo"), "PIP_CACHE_DIR": str(cache / "pip")}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=clean, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"'{command}' failed")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used


def machine() -> str:
    """Return a description of the machine."""
    model = "unknown processor"
    try:
        model = re.findall(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[0]
    except (OSError, IndexError):
        pass
    rust = subprocess.run(["rustc", "--version"], capture_output=True, text=True).stdout.split()[1]
    system = f"{platform.system()} {platform.release().split('-')[0]}"
    python = platform.python_version()
    return f"{os.cpu_count()} cores, {model}, {system}, Rust {rust}, Python {python}"


def minutes(seconds: float) -> str:
    """Return a duration as text, in seconds or minutes."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def builds(clone: Path) -> list[str]:
    """Measure `make demo` in a fresh clone, and builds after a change; return table rows."""
    rows = ["| what | time | processor time | goal |", "| --- | --- | --- | --- |"]

    def add(what: str, measured: tuple[float, float], goal: str) -> None:
        seconds, used = measured
        rows.append(f"| {what} | {minutes(seconds)} | {minutes(used)} | {goal} |")
        print(rows[-1], flush=True)

    add("`make demo` in a fresh clone", timed("make demo", clone), "4.5 min, 7.5 min")
    add("`make demo` again", timed("make demo", clone), "20 s")
    touch = clone / "crates/gt-python/src/lib.rs"
    touch.write_text(touch.read_text() + "\n")
    add(
        "`make build PROFILE=edit`, all crates, the first time",
        timed("make build PROFILE=edit", clone),
        "",
    )
    for crate, name, goal in CHANGES:
        path = clone / name
        text = path.read_text()
        path.write_text(
            text + f"\n#[allow(dead_code)]\nfn changed() -> u32 {{\n    {len(text)}\n}}\n"
        )
        add(
            f"`make build PROFILE=edit` after a change in {crate}",
            timed("make build PROFILE=edit", clone),
            f"{goal} s",
        )
    return rows


def tests(clone: Path) -> list[str]:
    """Measure the parts of `make test`; return table rows."""
    rows = ["| part | time | tests |", "| --- | --- | --- |"]
    seconds, _ = timed("make test", clone)
    found = json.loads((clone / "target/test-reports/test.json").read_text())
    rows += [
        f"| {part['name']} | {minutes(part['seconds'])} | {part['tests']:,} |" for part in found
    ]
    rows.append(f"| `make test` in all (goal: 10 min) | {minutes(seconds)} | |")
    return rows


def wheels(clone: Path) -> list[str]:
    """Measure the build of a wheel; return table rows."""
    seconds, used = timed("make wheel", clone)
    (wheel,) = (clone / "dist").glob("*x86_64.whl")
    size = wheel.stat().st_size / 1e6
    return [
        "| wheel | size | time | processor time |",
        "| --- | --- | --- | --- |",
        f"| `{wheel.name}` | {size:.1f} MB | {minutes(seconds)} | {minutes(used)} |",
    ]


def replace(page: str, name: str, rows: list[str], form: str = MARK) -> str:
    """Return the page with the table after a mark replaced."""
    mark = form.format(name=name)
    head, found, rest = page.partition(mark)
    if not found:
        sys.exit(f"docs/building.md has no mark '{mark}'")
    rest = re.sub(r"\A\n+(\|.*\n)*", "", rest)
    return (
        f"{head}{mark}\n\n"
        + "\n".join(rows)
        + f"\n{'' if rest.startswith(chr(10)) else chr(10)}{rest}"
    )


SECTIONS = {"builds": builds, "tests": tests, "wheels": wheels}


def main() -> int:
    """Measure and print, or write the page; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the tables into this page"
    )
    parser.add_argument("--only", choices=SECTIONS, action="append", help="measure only this")
    args = parser.parse_args()
    # The folder's name has blanks, which the build must support.
    with tempfile.TemporaryDirectory(prefix="gt report ") as folder:
        clone = Path(folder) / "gt"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        for name in args.only or SECTIONS:
            rows = SECTIONS[name](clone)
            print("\n".join(rows), flush=True)
            if args.write:
                page = replace(args.write.read_text(), name, rows)
                page = re.sub(r"(?m)^Machine: .*$", f"Machine: {machine()}.", page)
                args.write.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
