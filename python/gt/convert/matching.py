"""The comparison of a source with a model: a table of tensors, and its totals."""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass, replace

from gt.convert.entries import Entry
from gt.convert.errors import counted
from gt.convert.models import Wanted

#: The states of a tensor in a comparison, in the order in which totals list them.
_STATES = ("matched", "tied", "missing", "unexpected", "mis-shaped")


@dataclass(frozen=True)
class Row:
    """The row of one tensor in a report.

    Args:
        name: the tensor's name.
        shape: the shape in the source, or in the model if the source lacks the tensor.
        dtype: the dtype to write; empty if the source lacks the tensor.
        state: "matched", "tied", "missing", "unexpected" or "mis-shaped"; "found" without a model.
        note: the nearest name, the shape in the model, or the name of the tied tensor.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    state: str
    note: str = ""

    @property
    def fits(self) -> bool:
        """Whether the tensor matches, or there is no model to compare with."""
        return self.state in ("found", "matched", "tied")


@dataclass
class Report:
    """The result of a conversion.

    Args:
        rows: one row for each name, those of the source first.
        entries: the tensors to write, including names that the model ties.
        carried: the other files, which are copied.
        left: files and folders that are not copied, such as weights in other formats.
        target: the folder that was written; None if nothing was written.
    """

    rows: list[Row]
    entries: list[Entry]
    carried: list[str]
    left: list[str]
    target: str | None = None

    @property
    def fits(self) -> bool:
        """Whether source and model have the same names and shapes."""
        return all(row.fits for row in self.rows)

    def totals(self) -> str:
        """Return a line with the number of tensors, numbers and bytes, and of tensors by state."""
        own = [entry for entry in self.entries if entry.tied is None]
        numbers, size = sum(e.count for e in own), sum(e.bytes for e in own)
        text = f"{counted(len(own), 'tensor')}, {counted(numbers, 'number')}, {size:,} bytes"
        states = Counter(row.state for row in self.rows)
        told = ", ".join(f"{states[state]} {state}" for state in _STATES if states[state])
        return f"{text}: {told}" if told else text

    def __str__(self) -> str:
        shapes = [" x ".join(map(str, row.shape)) or "scalar" for row in self.rows]
        names = max([len(row.name) for row in self.rows] + [4])
        wide = max([len(shape) for shape in shapes] + [5])
        lines = [f"{'name':{names}}  {'shape':{wide}}  {'dtype':8}  state"]
        for row, shape in zip(self.rows, shapes, strict=True):
            state = f"{row.state}{': ' if row.note else ''}{row.note}"
            lines.append(f"{row.name:{names}}  {shape:{wide}}  {row.dtype:8}  {state}")
        return "\n".join([*lines, "", self.totals()])


def compare(entries: list[Entry], wanted: Wanted | None) -> tuple[list[Row], list[Entry]]:
    """Compare the tensors of a source with a model.

    Returns:
        A row for each name, and the entries with those added that the model ties.
    """
    if wanted is None:
        return [_row(e, "tied" if e.tied else "found", e.tied or "") for e in entries], entries
    entries = _with_ties(entries, wanted)
    found = {entry.name: entry for entry in entries}
    missing = [name for name in wanted.shapes if name not in found]
    unexpected = [name for name in found if name not in wanted.shapes]
    rows = [_compared(entry, wanted, missing) for entry in entries]
    for name in missing:
        note = _near(name, unexpected, "the source has")
        rows.append(Row(name, wanted.shapes[name], "", "missing", note))
    return rows, entries


def _row(entry: Entry, state: str, note: str = "") -> Row:
    return Row(entry.name, entry.shape, entry.dtype, state, note)


def _compared(entry: Entry, wanted: Wanted, missing: list[str]) -> Row:
    shape = wanted.shapes.get(entry.name)
    if shape is None:
        return _row(entry, "unexpected", _near(entry.name, missing, f"{wanted.model} has"))
    if shape != entry.shape:
        told = " x ".join(map(str, shape)) or "scalar"
        return _row(entry, "mis-shaped", f"{wanted.model} has {told}")
    if entry.tied:
        return _row(entry, "tied", entry.tied)
    other = wanted.tied.get(entry.name)
    differs = f"its values differ from those of {other}, to which {wanted.model} ties it"
    return _row(entry, "matched", differs if other else "")


def _with_ties(entries: list[Entry], wanted: Wanted) -> list[Entry]:
    """Tie the names that the model ties, if the source lacks them or their values are equal."""
    found = {entry.name: entry for entry in entries}
    groups: dict[str, list[str]] = {}
    for name, other in wanted.tied.items():
        groups.setdefault(other, [other]).append(name)
    for group in groups.values():
        first = next((found[name] for name in group if name in found), None)
        if first is None:
            continue
        first = found.get(first.tied or "", first)
        for name in group:
            if name != first.name and (name not in found or _equal(first, found[name])):
                found[name] = replace(first, name=name, tied=first.name)
    return list(found.values())


def _equal(first: Entry, second: Entry) -> bool:
    """Return whether two tensors have the same dtype, shape and values, so one suffices."""
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return False
    return second.tied == first.name or bool((first.read() == second.read()).all())


def _near(name: str, others: list[str], who: str) -> str:
    near = difflib.get_close_matches(name, others, n=1)
    return f"{who} {near[0]!r}" if near else ""
