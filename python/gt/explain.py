"""Explanations of the plan of a piece of program: where operations run and what is redistributed.

with gt.debug.explain() as explanation:
    loss = step(batch)
print(explanation.moved_bytes)
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gt import _gt
from gt._display import html
from gt._display.notebook import is_terminal, show
from gt._display.sizes import size_text
from gt.session.session import Session, current_session

__all__ = ["Explanation", "Move", "Placed", "Step", "explain"]

#: The remark on a step whose shape depends on data.
COUNTED = (
    "its shape depends on data: the number of values was awaited before, and a hot path ends here"
)


@dataclass
class Placed:
    """A tensor, and its placement on workers."""

    dtype: str
    shape: tuple[int, ...]
    placement: str
    workers: list[int]

    def __str__(self) -> str:
        """Return the text, such as `float32 (128, 64) Shard(0) on [0, 1]`."""
        return f"{self.dtype} {self.shape} {self.placement} on {self.workers}"


@dataclass
class Move:
    """A redistribution of data between workers, and its reason."""

    collective: str
    bytes: int
    source: Placed
    target: Placed
    reason: str


@dataclass
class Step:
    """An operation as it was planned; `line` is the user's line that issued it.

    `counted` is true if its shape depends on data: the number of values was awaited before.
    """

    operation: str
    line: str | None
    operands: list[Placed]
    output: Placed
    moves: list[Move]
    counted: bool = False


@dataclass
class SlowLink:
    """A link between two machines that is much slower than others, with its rate."""

    one: str
    other: str
    bytes_per_second: int


@dataclass
class Explanation:
    """All steps of a piece of program, and the bytes of memory in use on each worker after it.

    `slots` lists the name of the worker that carries each of the session's slots, "" while none
    does. The `workers` of tensors and scopes are numbers of slots. `machines` lists the machine of
    each of these workers; neighbours are on one machine, or on near ones. `slow_links` are links
    between these machines that carry less than an eighth of what the fastest does: neighbours are
    on both ends of one only if there is no other way.
    """

    steps: list[Step] = field(default_factory=list)
    memory: dict[int, int] = field(default_factory=dict)
    slots: list[str] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)
    slow_links: list[SlowLink] = field(default_factory=list)

    @property
    def moves(self) -> list[Move]:
        """All redistributions, in order."""
        return [move for step in self.steps for move in step.moves]

    @property
    def moved_bytes(self) -> int:
        """The number of bytes sent between workers."""
        return sum(move.bytes for move in self.moves)

    def __str__(self) -> str:
        """Return a line for each operation, followed by one for each of its redistributions."""
        lines = []
        for step in self.steps:
            lines.append(f"{step.operation}: {_operands(step)} -> {step.output}")
            if step.line:
                lines.append(f"    at {step.line}")
            if step.counted:
                lines.append(f"    {COUNTED}")
            lines += [f"    {_move_text(move)}" for move in step.moves]
        return "\n".join([*lines, *self._sums()])

    def _sums(self) -> list[str]:
        """Return the lines about all steps together."""
        held = ", ".join(
            f"worker {n}: {size_text(size)}" for n, size in sorted(self.memory.items())
        )
        lines = [
            f"{len(self.steps)} operations, {len(self.moves)} moves, "
            f"{size_text(self.moved_bytes)} between workers",
            f"memory: {held or 'nothing'}",
        ]
        if len(set(self.slots)) < len(self.slots) or "" in self.slots:
            carried = ", ".join(
                f"slot {n} on {worker or 'no worker'}" for n, worker in enumerate(self.slots)
            )
            lines.append(f"slots: {carried}")
        if len(set(self.machines)) > 1:
            lines.append(f"machines: {_runs(self.machines)}")
        lines += [
            f"slow link: {link.one} to {link.other}, {size_text(link.bytes_per_second)}/s"
            for link in self.slow_links
        ]
        return lines

    def _repr_html_(self) -> str:
        """Return a table of the steps for notebooks, with their redistributions."""
        head = ["operation", "operands", "output", "moves", "line"]
        table = html.table(head, map(_row, self.steps), len(self.steps), "operations")
        return html.page(table, *map(html.paragraph, self._sums()))


class explain:  # noqa: N801 - it is used as a function and as a context
    """Explain a piece of program: `with gt.debug.explain():`, or `gt.debug.explain(function)`.

    Prints the plan at the end, unless `quiet`; a notebook shows it as a table. As a context it
    returns the `Explanation`, which is filled at the end; called with a function, it calls it with
    the arguments that follow and stores the explanation in `result`.
    """

    def __init__(self, function: Callable[..., Any] | None = None, *args: Any, quiet: bool = False):
        self.result = Explanation()
        self.quiet = quiet
        if function is not None:
            with self:
                function(*args)

    def __enter__(self) -> Explanation:
        """Begin to record what is planned for this thread's session."""
        self._session = session = current_session()
        with _LOCK:
            if session in _OPEN:
                _collect(session)
            _gt.begin_explaining(session._open)
            _OPEN.setdefault(session, []).append(self.result)
        return self.result

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Fill the explanation, and print it."""
        session = self._session
        with _LOCK:
            try:
                _collect(session)
            finally:
                others = [other for other in _OPEN.pop(session) if other is not self.result]
                if others:
                    _OPEN[session] = others
            if others:
                _gt.begin_explaining(session._open)
        if not self.quiet and kind is None:
            show(self.result)

    def _ipython_display_(self) -> None:
        """Show the explanation where a cell ends with this object, unless it was shown before."""
        if self.quiet:
            show(self.result)
        elif is_terminal():
            print(self)


#: The active explanations of each session, the outermost first. An outer explanation includes its
#: inner ones.
_OPEN: dict[Session, list[Explanation]] = {}
_LOCK = threading.Lock()


def _collect(session: Session) -> None:
    """Add the steps planned since the last call to all active explanations of a session."""
    noted = _gt.end_explaining(session._open)
    steps = [_step(step) for step in noted["steps"]]
    for explanation in _OPEN[session]:
        explanation.steps += steps
        explanation.memory, explanation.slots = noted["memory"], noted["slots"]
        explanation.machines = noted["machines"]
        explanation.slow_links = [SlowLink(*link) for link in noted["slow_links"]]


def _runs(machines: list[str]) -> str:
    """Return which slots are on which machine, in the order of the slots."""
    parts = []
    first = 0
    for machine, group in itertools.groupby(machines):
        last = first + len(list(group)) - 1
        slots = f"slot {first}" if first == last else f"slots {first} to {last}"
        parts.append(f"{slots} on {machine or 'no machine'}")
        first = last + 1
    return ", ".join(parts)


def _operands(step: Step) -> str:
    return ", ".join(map(str, step.operands)) or "nothing"


def _move_text(move: Move) -> str:
    return (
        f"{move.collective} of {size_text(move.bytes)}: {move.source.placement} on "
        f"{move.source.workers} -> {move.target.placement} on {move.target.workers}, "
        f"because {move.reason}"
    )


def _row(step: Step) -> list[str]:
    """Return the cells of a step in a table."""
    moves = [*map(_move_text, step.moves), *([COUNTED] if step.counted else [])]
    cells = [step.operation, _operands(step), str(step.output), "; ".join(moves) or "-"]
    return [*cells, step.line or "-"]


def _step(step: dict[str, Any]) -> Step:
    operands = [Placed(**operand) for operand in step["operands"]]
    moves = [
        Move(
            move["collective"],
            move["bytes"],
            Placed(**move["from"]),
            Placed(**move["to"]),
            move["reason"],
        )
        for move in step["moves"]
    ]
    output, counted = Placed(**step["output"]), step["counted"]
    return Step(step["operation"], step["line"], operands, output, moves, counted)
