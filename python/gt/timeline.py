"""Timelines of clients, dispatcher and workers: what `gt visualize` draws, as an object.

with gt.debug.timeline() as timeline:
    train()
timeline.save("timeline.png")
"""

import contextlib
import os
import sys
import time
import weakref
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from gt import _gt
from gt._display import html
from gt.session.session import Session, current_session

if TYPE_CHECKING:
    import subprocess

# `subprocess`, `tempfile` and `shutil` are imported at their first use, as they are slow to import.

__all__ = ["Timeline", "timeline"]

#: The picture in a notebook, in inches, and the most bytes of it that are sent as shapes.
_WIDTH, _LANE, _LEGEND, _HIGHEST = 12.0, 0.9, 1.4, 40.0
_AS_SHAPES = 2_000_000

#: The most seconds that are recorded, and that a recording may take to begin and to end.
_LONGEST = 600
_BEGINS_WITHIN = _ENDS_WITHIN = 60.0

_ONLY_LAST = "of the sessions with workers in this process, only the last one can be recorded"

#: How long peers may take to report what they have done, in seconds.
_REPORTED_WITHIN = 0.2


class Timeline:
    """A timeline with a track for each client, the dispatcher and each worker.

    A notebook shows it as a picture. In one with shapes, the pointer shows more of what is below.

    Args:
        log: a log of `gt trace` or `GT_INSTRUCTION_LOG`.

    Raises:
        OSError: the log cannot be read.
        ValueError: it is no log, or has no events.

    Example:
        >>> gt.debug.Timeline("trace.log").save("timeline.png")  # doctest: +SKIP
    """

    #: The number of events and of tracks, and the seconds from the first event to the last.
    events = 0
    lanes = 0
    seconds = 0.0

    def __init__(self, log: str | PathLike[str] | None = None):
        self._log: Path | None = None
        self._picture = html.paragraph("nothing is recorded yet")
        if log is not None:
            self._read(Path(log))

    def save(
        self,
        path: str | PathLike[str],
        *,
        width: float = 16.0,
        height: float = 10.0,
        dpi: float = 150.0,
    ) -> None:
        """Draw the timeline into a file.

        Args:
            path: the file, which ends with `.png`, `.svg`, or `.json` for Perfetto.
            width: the width of a picture in inches.
            height: its height in inches.
            dpi: its pixels per inch.

        Raises:
            OSError: the file cannot be written.
            RuntimeError: nothing is recorded yet.
            ValueError: the file has another ending, or a size is out of range.
        """
        if self._log is None:
            raise RuntimeError("save: nothing is recorded before the end of gt.debug.timeline()")
        _gt.visualize(self._log, Path(path), None, dpi, width, height)

    def __repr__(self) -> str:
        if self._log is None:
            return "<gt.debug.Timeline: nothing is recorded yet>"
        counts = f"{self.events:,} events on {self.lanes} lanes, {self.seconds:.3f} s"
        return f"<gt.debug.Timeline: {counts}>"

    def _repr_html_(self) -> str:
        return html.page(self._picture)

    def _read(self, log: Path) -> None:
        """Draw a log."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="gt-") as folder:
            path = Path(folder) / "timeline.svg"
            drawn = _gt.visualize(log, path, None, 96.0, _WIDTH, 4 * _LANE + _LEGEND)
            self.events, self.lanes, self.seconds = (
                drawn[name] for name in ("events", "lanes", "seconds")
            )
            height = min(self.lanes * _LANE + _LEGEND, _HIGHEST)
            if self.lanes > 4:
                _gt.visualize(log, path, None, 96.0, _WIDTH, height)
            if path.stat().st_size <= _AS_SHAPES:
                self._picture = html.drawing(path.read_text(encoding="utf-8"))
            else:
                pixels = path.with_suffix(".png")
                _gt.visualize(log, pixels, None, 96.0, _WIDTH, height)
                self._picture = html.image(pixels.read_bytes(), "a timeline")
        self._log = log


@contextlib.contextmanager
def timeline(
    *, key_file: str | PathLike[str] | None = None, insecure: bool = False
) -> Iterator[Timeline]:
    """Record what clients, dispatcher and workers do during a block, at most for ten minutes.

    Returns, as a context, the `Timeline`, which is drawn at the end, when all that was issued is
    computed. Other sessions on the same workers are on it, too. Of several sessions with workers in
    this process, only the last one that was opened can be recorded.

    Args:
        key_file: the key file, if the session was connected with one.
        insecure: whether the session was connected with `insecure=True`.

    Raises:
        ConnectionError: the dispatcher cannot be watched.
        ValueError: there are no events.

    Example:
        >>> with gt.debug.timeline() as timeline:
        ...     total = gt.ones(100, 100).sum().item()
        >>> timeline.events > 0
        True
    """
    import tempfile

    session, recorded = current_session(), Timeline()
    folder = tempfile.mkdtemp(prefix="gt-timeline-")
    # The log is kept with the timeline, for `save`.
    weakref.finalize(recorded, _remove, folder, os.getpid())
    log = Path(folder) / "timeline.log"
    options = [] if key_file is None else ["--key-file", os.fspath(key_file)]
    if insecure:
        options.append("--insecure")
    process, owner = _begin(session, log, options), os.getpid()
    try:
        yield recorded
        # The block may have closed the session.
        if not session.closed:
            session.synchronize()
        time.sleep(_REPORTED_WITHIN)
    finally:
        # A process that was forked in the block leaves the recording to its parent.
        problem = _end(process) if os.getpid() == owner else ""
    if os.getpid() != owner:
        return
    if problem and not log.stat().st_size:
        raise ConnectionError(f"timeline: {problem}")
    recorded._read(log)


def _begin(session: Session, log: Path, options: list[str]) -> "subprocess.Popen[str]":
    """Start a process that records a session's dispatcher, and wait until it does."""
    import subprocess

    # What was issued before the block does not belong to it.
    session.synchronize()
    opened = session._open
    place = opened.place.removeprefix("the server at ")
    target = [place] if opened.remote else ["--pid", str(os.getpid())]
    # It finds `gt` where this process has found it.
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [sys.executable, "-m", "gt.scripts._record_block", str(log), str(_LONGEST)]
        + [*target, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        # Ctrl-C, which goes to this process and its group, does not end it.
        start_new_session=True,
    )
    try:
        problem = _wait_until_recorded(process)
    except BaseException:
        _end(process)
        raise
    if problem and not opened.remote:
        problem += f"\n  hint: {_ONLY_LAST}"
    if problem:
        raise ConnectionError(f"timeline: {problem}")
    return process


def _wait_until_recorded(process: "subprocess.Popen[str]") -> str:
    """Wait until events are recorded; return what went wrong."""
    import select

    assert process.stdout is not None
    is_said, _, _ = select.select([process.stdout], [], [], _BEGINS_WITHIN)
    if is_said and process.stdout.readline():
        return ""
    return _end(process) or f"nothing is recorded within {_BEGINS_WITHIN:.0f} s"


def _end(process: "subprocess.Popen[str]") -> str:
    """End a recording; return what went wrong."""
    import subprocess

    try:
        # A line, as a forked process may hold the other end open.
        _, errors = process.communicate("end\n", timeout=_ENDS_WITHIN)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return f"the recording did not end within {_ENDS_WITHIN:.0f} s"
    return errors.strip()


def _remove(folder: str, owner: int) -> None:
    """Remove the folder of a log, unless this process is a fork of the one that made it."""
    if os.getpid() == owner:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
