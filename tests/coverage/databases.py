"""The results of PyTorch's databases of modules and optimizers, as sections of docs/coverage.md."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
sys.path += [str(HERE.parent / folder) for folder in ("nn", "optim")]

import database  # noqa: E402
import gt  # noqa: E402
import optimizer_database  # noqa: E402
from report import cell  # noqa: E402


class Row(NamedTuple):
    """The result of an entry: its samples, those that pass, and the first failure."""

    name: str
    samples: int
    passed: int
    reason: str


_MODULES = """Each sample of the database is a module's arguments and an input. Modules of both
libraries get the same state; their text, outputs, gradients and the states afterwards have to
match, in training and in evaluation mode."""

_OPTIMIZERS = """Each sample of the database is an optimizer's options. Both libraries make
{steps} steps from the same parameters with the same gradients; the parameters have to match
afterwards."""

#: The heading before which the sections are inserted into a page that has none.
_BEFORE = "## What passing means\n"


def modules() -> Iterator[Row]:
    """Check each entry of the database of modules."""
    for info in database.module_db:
        name, samples = database.name_of(info), database.count(info)
        if not hasattr(gt.nn, name):
            yield Row(name, samples, 0, "missing")
            continue
        problems = database.check(info)
        yield Row(name, samples, samples - len(problems), problems[0] if problems else "")


def optimizers() -> Iterator[Row]:
    """Check each entry of the database of optimizers."""
    for name, (samples, passed, problems) in optimizer_database.table().items():
        yield Row(name, samples, passed, problems[0] if problems else "")


def names(kind: str) -> list[str]:
    """Return the names of all entries of a database, without checking them."""
    if kind == "modules":
        return [database.name_of(info) for info in database.module_db]
    return list(dict.fromkeys(cls.__name__ for _, cls, _ in optimizer_database.entries()))


#: The function that checks the entries of each database, and the text about it.
CHECKS: dict[str, Callable[[], Iterator[Row]]] = {"modules": modules, "optimizers": optimizers}
_TEXTS = {
    "modules": _MODULES,
    "optimizers": _OPTIMIZERS.format(steps=optimizer_database.STEPS),
}


def section(kind: str, rows: list[Row]) -> str:
    """Return a section of the page."""
    samples, passed = (sum(row[at] for row in rows) for at in (1, 2))
    whole = sum(row.passed == row.samples for row in rows)
    share = f"{100 * passed / max(samples, 1):.1f} %"
    lines = [
        f"## {kind.title()}\n\n{_TEXTS[kind]}\n",
        f"**{whole} of {len(rows)} {kind} pass; of {samples} samples, {passed} do: {share}.**\n",
        f"| {kind[:-1]} | samples | pass | |\n| --- | ---: | ---: | --- |",
        *(f"| {row.name} | {row.samples} | {row.passed} | {cell(row.reason)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n\n"


def section_of(page: str, kind: str) -> str:
    """Return the section of a database in a page, or an empty text."""
    found = _pattern(kind).search(page)
    return found[0] if found else ""


def with_section(page: str, kind: str, text: str) -> str:
    """Return a page with its section replaced by a new one, or the new one inserted."""
    if _pattern(kind).search(page):
        return _pattern(kind).sub(lambda _: text, page)
    return page.replace(_BEFORE, text + _BEFORE, 1)


def rows_of(page: str, kind: str) -> list[tuple[str, int, int]]:
    """Return the entries that a page lists: name, number of samples, number that pass."""
    found = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \|", section_of(page, kind), re.MULTILINE)
    return [(name, int(samples), int(passed)) for name, samples, passed in found]


def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile(rf"^## {kind.title()}\n.*?(?=^## )", re.MULTILINE | re.DOTALL)
