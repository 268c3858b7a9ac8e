"""Run PyTorch's operator database against GT: `python tests/coverage/run.py --help`."""

import argparse
import json
import re
import sys
import time
from pathlib import Path

import entries
import report
import torch
from workers import check_all

PASSING = Path(__file__).with_name("passing.txt")


def main() -> int:
    """Check what is asked for, and say what passes."""
    asked = _arguments()
    names = _names(asked)
    options = {"dtype": asked.dtype, "faces": asked.faces, "second": asked.second, "all_reasons": asked.verbose}
    begin = time.monotonic()
    progress = _Progress(len(names), asked.verbose)
    results = check_all(names, asked.jobs, options, progress)
    _complete(results)
    if asked.list_failures or asked.verbose:
        print(report.failures(results, reasons=5 if asked.verbose else 1))
    print(report.table(results))
    print(f"{time.monotonic() - begin:.0f} s")
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1))
    if asked.write:
        asked.write.write_text(report.page(results, asked.dtype))
        _write_passing(results)
    return 0


def _write_passing(results: list[dict]) -> None:
    """Write what passes for the tests, and say what passed before."""
    before = set(PASSING.read_text().split()) if PASSING.exists() else set()
    now = report.passing(results)
    if lost := sorted(before - set(now.split())):
        print(f"passed before: {' '.join(lost)}")
    PASSING.write_text(now)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32", help="where an entry takes it; else another")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these entries: exp round/...")
    parser.add_argument("--match", type=re.compile, metavar="REGEX", help="entries whose name has")
    parser.add_argument(
        "--jobs", type=int, default=2, metavar="N", help="processes, 2 if not given"
    )
    parser.add_argument("--faces", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--second", action="store_true", help="gradients of gradients, too")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write docs/coverage.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results")
    parser.add_argument("--verbose", action="store_true", help="say each entry, up to 5 reasons")
    parser.add_argument("--list-failures", action="store_true", help="list what fails, and why")
    asked = parser.parse_args()
    if asked.write and (asked.only or asked.match):
        parser.error("--write is for all entries: without --only and --match")
    return asked


def _names(asked) -> list[str]:
    """Give the names of the entries that are asked for; `round` means all its variants."""
    names = [
        name
        for name, op in entries.entries().items()
        if asked.dtype == "float32" or op.supports_dtype(getattr(torch, asked.dtype), "cpu")
        if not asked.second or (op.supports_autograd and op.supports_gradgrad)
    ]
    if asked.only:
        unknown = [n for n in asked.only if not any(_is(name, n) for name in names)]
        if unknown:
            sys.exit(f"no such entries: {' '.join(unknown)}")
        names = [name for name in names if any(_is(name, wanted) for wanted in asked.only)]
    if asked.match:
        names = [name for name in names if asked.match.search(name)]
    return names


def _is(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(wanted + "/")


class _Progress:
    """Says what is done, on the standard error."""

    def __init__(self, total: int, verbose: bool):
        self.total = total
        self.verbose = verbose
        self.done = 0

    def __call__(self, result: dict) -> None:
        self.done += 1
        if self.verbose:
            how = "fails" if result["reasons"] else "passes"
            print(f"{how} {result['name']}, {result.get('seconds', 0)} s", file=sys.stderr)
        elif self.done % 50 == 0 or self.done == self.total:
            print(f"{self.done} of {self.total}", file=sys.stderr)


def _complete(results: list[dict]) -> None:
    """Add to results of processes that died what else there is to say."""
    found = entries.entries()
    for result in results:
        result.setdefault("group", entries.group(found[result["name"]]))
        result.setdefault("seconds", 0.0)


if __name__ == "__main__":
    sys.exit(main())
