"""Introspection: the tape, placements, redistribution, failures, statistics, timelines."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from gt import _gt
from gt._arguments import brief
from gt._display import html
from gt._public import show_callers
from gt.explain import Explanation, Placed, explain
from gt.timeline import Timeline, timeline

__all__ = [
    "Explanation",
    "Failure",
    "Tape",
    "Timeline",
    "explain",
    "failed",
    "get_cache_stats",
    "get_tape",
    "get_worker_stats",
    "placement",
    "print_tape",
    "print_worker_stats",
    "strict",
    "timeline",
]


class Tape(list[dict[str, Any]]):
    """The operations on the tape, oldest first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        head = ["#", "operation", "inputs", "output", "signal"]
        table = html.table(head, map(_tape_row, self), len(self), "operations")
        return html.page(html.paragraph(f"tape: {len(self):,} operation(s)"), table)


class Failure(NamedTuple):
    """A failed operation and its consequences."""

    #: The operation that failed, and why.
    reason: str
    #: The line that issued it, as `file:line`.
    line: str | None
    #: The number of tensors that have no value because of it.
    tensors: int
    #: The number of recent steps that were rolled back because of it.
    steps: int


def failed() -> list[Failure]:
    """Return the failures on the workers of this thread's session. Waits for the workers.

    A tensor is in error if its operation, or an operation that it depends on, has failed. A step
    that depends on such a tensor was rolled back: the tensors that it would have changed kept their
    values. Failures are in program order.

    >>> x = gt.ones(3)[gt.tensor([5], dtype=gt.int64)]
    >>> [failure] = gt.debug.failed()
    >>> failure.reason.splitlines()[0], failure.tensors
    ('indexing: index 5 is not in [-3, 3)', 1)
    """
    return [Failure(*failure) for failure in _gt.failures()]


def placement(tensor: _gt.Tensor) -> list[Placed]:
    """Return where a tensor is: each layout in which it exists, with its workers."""
    if not isinstance(tensor, _gt.Tensor):
        raise TypeError(f"tensor is {brief(tensor)}, expected a tensor")
    return [Placed(**placed) for placed in _gt.placements(tensor)]


@contextmanager
def strict(limit: int = 0) -> Iterator[None]:
    """Make it an error if an operation implicitly redistributes more than `limit` bytes.

    Explicit redistribution is exempt: onto the workers of a signal scope, `gt.signal.tensor`, and
    sums of partial results. The error is raised where the value is fetched, and names the line.
    """
    if not isinstance(limit, int) or limit < 0:
        raise ValueError(f"strict: the limit is {limit!r}, expected a number of bytes, 0 or more")
    session = _gt.current_session()
    outer = _gt.set_strict(session, limit)
    try:
        yield
    finally:
        if not session.closed:
            _gt.set_strict(session, outer)


def get_tape() -> Tape:
    """Return the operations on the tape that are still reachable, oldest first.

    Each is a dict with `id`, `op`, `inputs`, `shape`, `dtype` and `signal`.
    """
    return Tape(_gt.get_tape())


def _tape_row(entry: dict[str, Any]) -> list[str]:
    """Return the cells of an operation in a table."""
    output = f"{entry['dtype']} {entry['shape']}"
    inputs = ", ".join(entry["inputs"])
    return [str(entry["id"]), entry["op"], inputs, output, entry["signal"] or "-"]


def print_tape() -> None:
    """Print the tape, one operation a line."""
    tape = get_tape()
    print(f"tape: {len(tape)} operation(s)")
    for entry in tape:
        inputs = ", ".join(entry["inputs"])
        signal = f"  signal={entry['signal']}" if entry["signal"] else ""
        print(
            f"  #{entry['id']:<6} {entry['op']:<14} ({inputs}) -> "
            f"{entry['dtype']} {entry['shape']}{signal}"
        )


def get_cache_stats() -> dict[str, dict[str, Any]]:
    """Return how the caches of this process are used, by the kernel of PyTorch's device.

    A kernel's first call with some shapes and dtypes is recorded, and later ones are replayed. The
    instructions that read views of a tensor's memory are under "views".

    Returns:
        For each kernel that was called: its `entries` and the `instructions` in them, and how many
        calls found one (`hits`), found none (`misses`), and how many entries were `evicted` to make
        room, the least recently used first. The caches of workers are in `get_worker_stats`.

    Example:
        >>> gt.debug.get_cache_stats()["aten::relu"]["hits"]  # doctest: +SKIP
        7
    """
    return _gt.get_cache_stats()


def get_worker_stats() -> dict[str, dict[str, Any]]:
    """Return each worker's statistics by its name.

    `operations` counts those it has run (`skipped`: not run, as every result was freed before),
    `memory` counts the tensors and bytes it holds, `hotpath` the repeated sequences, and
    `compilation` what its engine has compiled of those. `compilation["compiled"]` lists, for
    engines in Python, the most recent compilations: the `operations`, the `reason`, such as
    "came 8 times", and the `seconds` that it took. `avg_ops_per_compilation`, `min_...` and
    `max_...` are the lengths of the sequences in `top_sequences`, which are cached as programs.
    """
    stats = _gt.get_worker_stats()
    for worker in stats.values():
        worker["compilation"].update(_lengths(worker["hotpath"]["top_sequences"]))
    return stats


def _lengths(sequences: list[dict[str, Any]]) -> dict[str, float]:
    """Return the average, least and largest number of operations in a sequence."""
    lengths = [sequence["length"] for sequence in sequences] or [0]
    return {
        "avg_ops_per_compilation": sum(lengths) / len(lengths),
        "min_ops_per_compilation": min(lengths),
        "max_ops_per_compilation": max(lengths),
    }


def print_worker_stats() -> None:
    """Print each worker's statistics."""
    for name, stats in get_worker_stats().items():
        operations, memory = stats["operations"], stats["memory"]
        hot, compiled = stats["hotpath"], stats["compilation"]
        share = 100 * hot["hot_instructions"] / max(hot["total_instructions"], 1)
        print(f"{name} ({stats['engine']})")
        print(
            f"  operations:  {operations['total']} total, {operations['compiled']} compiled, "
            f"{operations['eager']} eager, {operations['failed']} failed, "
            f"{operations['skipped']} skipped"
        )
        print(
            f"  memory:      {memory['tensors']} tensors, {memory['bytes'] / 1e6:.1f} MB, "
            f"at most {memory['bytes_peak'] / 1e6:.1f} MB"
        )
        print(
            f"  hot paths:   {hot['hot_instructions']} of {hot['total_instructions']} operations "
            f"({share:.0f} %), {hot['hot_sequences']} sequence(s), "
            f"hot after {hot['hot_threshold']} repetitions"
        )
        for sequence in hot["top_sequences"]:
            print(
                f"    {sequence['repetitions']:>6} x {sequence['length']} operations, "
                f"{sequence['seconds'] * 1e3:.1f} ms: {sequence['operations']}"
            )
        print(
            f"  compilation: {compiled['cache_size']} program(s), {compiled['cache_hits']} hits, "
            f"{compiled['cache_misses']} misses, {compiled['failures']} failures, "
            f"{compiled['compile_seconds'] * 1e3:.1f} ms to compile, "
            f"{compiled['seconds_saved'] * 1e3:.1f} ms saved"
        )
        for code in compiled["compiled"]:
            print(f"    {code['seconds'] * 1e3:.1f} ms for {code['operations']}: {code['reason']}")


show_callers(globals())
