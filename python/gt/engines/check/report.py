"""The report of a check, as text and as JSON."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Finding:
    """One problem with the engine.

    `kind` is "wrong"; "missing" if nothing computes an operation that every engine must have; or
    "warning". `name` is what was checked: an operation, a plan, or a task such as "values".
    """

    kind: str
    name: str
    text: str
    #: The first case with this problem, and how many more cases have it.
    case: str = ""
    more: int = 0


@dataclass
class Timing:
    """The seconds an operation takes: on the engine, in NumPy if it has it, and natively."""

    name: str
    engine: float
    numpy: float | None
    natively: float

    @property
    def is_slow(self) -> bool:
        """Return whether every alternative is at least twice as fast."""
        return self.engine > 2 * max(self.numpy or 0, self.natively)


@dataclass
class Report:
    """The findings of a check of one engine."""

    engine: str
    #: How many cases each operation was tried on.
    cases: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    #: Composites that the engine does not lower, and that workers expand.
    expanded: list[str] = field(default_factory=list)
    #: Primitives that the native engine computes, with copies through host memory.
    natively: list[str] = field(default_factory=list)
    #: Plans that were compiled.
    compiled: list[str] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    seconds: float = 0

    @property
    def ok(self) -> bool:
        """Return whether nothing is wrong or missing; warnings are allowed."""
        return all(finding.kind == "warning" for finding in self.findings)

    def take(self, kind: str, what: Any) -> None:
        """Record a message from a task: its kind and contents."""
        if kind == "finding":
            self.add(what)
        elif kind == "cases":
            self.cases[what[0]] = what[1]
        elif kind == "timing":
            self.timings.append(what)
        elif kind in ("expanded", "natively", "compiled"):
            getattr(self, kind).append(what)

    def add(self, finding: Finding) -> None:
        """Add a finding; repeats of a finding for the same operation are only counted."""
        for known in self.findings:
            if (known.kind, known.name) == (finding.kind, finding.name) and (
                known.kind == "wrong" or known.text == finding.text
            ):
                known.more += 1
                return
        self.findings.append(finding)

    def of(self, kind: str) -> list[Finding]:
        """Return the findings of a kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    @property
    def slow(self) -> list[str]:
        """Return the names of timings for which every alternative is at least twice as fast."""
        return [timing.name for timing in self.timings if timing.is_slow]

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps({"ok": self.ok, **asdict(self), "slow": self.slow}, indent=2)

    def __str__(self) -> str:
        """Return the report as text."""
        count = sum(self.cases.values())
        lines = [
            f"{self.engine}: {len(self.cases)} operations on {count} cases, "
            f"{len(self.compiled)} plans compiled, in {self.seconds:.0f} s"
        ]
        for kind in ("wrong", "missing", "warning"):
            found = self.of(kind)
            lines += [f"\n{kind} ({len(found)})"] if found else []
            lines += [line for finding in found for line in _told(finding)]
        lines += _listed("expanded by the worker", self.expanded)
        title = "computed by the native engine (slow: values are copied through host memory)"
        lines += _listed(title, self.natively)
        if self.timings:
            lines += ["", f"{'time':28}{'engine':>12}{'numpy':>12}{'natively':>12}"]
            lines += [_row(timing) for timing in self.timings]
        lines += ["", "ok" if self.ok else "not ok: " + _counted(self)]
        return "\n".join(lines)


def _told(finding: Finding) -> Iterable[str]:
    text = finding.text.rstrip().replace("\n", "\n    ")
    yield f"  {finding.name}: {text}"
    if finding.case:
        more = f" ({finding.more} more)" if finding.more else ""
        yield f"    on {finding.case}{more}"


def _listed(title: str, names: list[str]) -> list[str]:
    if not names:
        return []
    lines, line = [f"\n{title} ({len(names)})"], " "
    for name in names:
        if len(line) + len(name) > 98:
            lines.append(line)
            line = " "
        line += f" {name}"
    return [*lines, line]


def _row(timing: Timing) -> str:
    times = "".join(
        f"{_time(seconds):>12}" for seconds in (timing.engine, timing.numpy, timing.natively)
    )
    return f"{timing.name:28}{times}{'  slow' if timing.is_slow else ''}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    unit, scale = ("ms", 1e3) if seconds >= 1e-3 else ("us", 1e6)
    return f"{seconds * scale:.1f} {unit}"


def _counted(report: Report) -> str:
    return f"{len(report.of('wrong'))} wrong, {len(report.of('missing'))} missing"
