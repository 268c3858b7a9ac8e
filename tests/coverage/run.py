"""Run PyTorch's databases of operators, modules and optimizers: `run.py --help`."""

import argparse
import importlib
import json
import re
import sys
import time
from pathlib import Path

import entries
import kinds
import report
from workers import check_all

PASSING = Path(__file__).with_name("passing")

#: PyTorch's databases.
TABLES = ("operators", "modules", "optimizers")

#: The section that `tests/torch_device/run.py` writes into the same page.
DEVICE = re.compile(r"<!-- torch device: begin -->.*<!-- torch device: end -->", re.DOTALL)


def main() -> int:
    """Run the checks that the options select, and print the results."""
    asked = _arguments()
    begin = time.monotonic()
    by_kind = _operators(asked) if "operators" in asked.tables else {}
    sections = {}
    for name in asked.tables:
        if name != "operators":
            sections[name] = databases().section(name, list(databases().CHECKS[name]()))
            print(f"\n{sections[name]}")
    print(f"{time.monotonic() - begin:.0f} s")
    if asked.write:
        asked.write.write_text(_page(asked.write, by_kind, sections))
        for kind, found in by_kind.items():
            _write_passing(PASSING / f"{kind}.txt", found)
    return 0


def _operators(asked) -> dict[str, list[dict]]:
    """Check operators, print a table of those that pass, and return the results by kind."""
    checks = _checks(asked)
    options = {"faces": asked.faces, "all_reasons": asked.verbose}
    progress = _Progress(len(checks), asked.verbose)
    results = check_all(checks, asked.jobs, options, progress)
    _complete(results)
    by_kind = {
        kind: [result for result in results if result["kind"] == kind] for kind in asked.kinds
    }
    for kind, found in by_kind.items():
        print(f"\n{kinds.title(kind)}")
        if asked.list_failures or asked.verbose:
            print(report.failures(found, reasons=5 if asked.verbose else 1))
        print(report.table(found))
    if asked.json:
        asked.json.write_text(json.dumps(results, indent=1))
    return by_kind


def _page(to: Path, by_kind: dict[str, list[dict]], sections: dict[str, str]) -> str:
    """Return the page; sections of databases that were not checked are kept."""
    old = to.read_text() if to.exists() else ""
    page = report.page(by_kind) if by_kind else old
    for name in databases().CHECKS:
        text = sections.get(name) or databases().section_of(old, name)
        page = databases().with_section(page, name, text)
    kept = DEVICE.search(old)
    if kept and kept[0] not in page:
        page = f"{page.rstrip()}\n\n{kept[0]}\n"
    return page


def databases():
    """Return the module `databases`, which is slow to import."""
    return importlib.import_module("databases")


def _write_passing(to: Path, results: list[dict]) -> None:
    """Write the names of passing entries for the tests, and print those that no longer pass."""
    before = set(to.read_text().split()) if to.exists() else set()
    now = report.passing(results)
    if lost := sorted(before - set(now.split())):
        print(f"passed before, {to.stem}: {' '.join(lost)}")
    to.write_text(now)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--kinds",
        nargs="+",
        default=[kinds.DTYPES[0]],
        choices=(*kinds.KINDS, "all"),
        help="dtypes, and `second` for gradients of gradients (default float32)",
    )
    parser.add_argument(
        "--tables",
        nargs="+",
        choices=TABLES,
        help="databases (default operators, or all with --write)",
    )
    parser.add_argument("--part", action="store_true", help="the part that the seed selects")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these entries: exp round/...")
    parser.add_argument("--match", type=re.compile, metavar="REGEX", help="entries that match")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="processes (default 2)")
    parser.add_argument("--faces", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="write docs/coverage.md")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results")
    parser.add_argument("--verbose", action="store_true", help="print each entry, up to 5 reasons")
    parser.add_argument("--list-failures", action="store_true", help="list failures with reasons")
    asked = parser.parse_args()
    if asked.write and (asked.only or asked.match or asked.part):
        parser.error("--write is for all entries: without --only, --match and --part")
    asked.tables = asked.tables or (TABLES if asked.write else TABLES[:1])
    if asked.write or "all" in asked.kinds:
        asked.kinds = list(kinds.KINDS)
    return asked


def _checks(asked) -> list[tuple[str, str]]:
    """Return the names and kinds to check; the name `round` selects all its variants."""
    known = list(entries.entries())
    unknown = [n for n in asked.only or () if not any(_is(name, n) for name in known)]
    if unknown:
        sys.exit(f"no such entries: {' '.join(unknown)}")
    return [
        (name, kind)
        for kind in asked.kinds
        for name in kinds.names(kind)
        if not asked.only or any(_is(name, wanted) for wanted in asked.only)
        if not asked.match or asked.match.search(name)
        if not asked.part or kinds.in_part(kind, name)
    ]


def _is(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(wanted + "/")


class _Progress:
    """Prints progress on standard error."""

    def __init__(self, total: int, verbose: bool):
        self.total = total
        self.verbose = verbose
        self.done = 0

    def __call__(self, result: dict) -> None:
        self.done += 1
        if self.verbose:
            how = "fails" if result["reasons"] else "passes"
            what = f"{result['name']}, {kinds.title(result['kind'])}"
            print(f"{how} {what}, {result.get('seconds', 0)} s", file=sys.stderr)
        elif self.done % 50 == 0 or self.done == self.total:
            print(f"{self.done} of {self.total}", file=sys.stderr)


def _complete(results: list[dict]) -> None:
    """Add the missing fields to the results of processes that died."""
    found = entries.entries()
    for result in results:
        result.setdefault("group", entries.group(found[result["name"]]))
        result.setdefault("seconds", 0.0)


if __name__ == "__main__":
    sys.exit(main())
