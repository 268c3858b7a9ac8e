"""`gt.watch()`: the workers and one's own sessions, live."""

import atexit
import contextlib
import math
import os
import threading
import time
from typing import Any

from gt import _gt
from gt._arguments import brief
from gt._display import notebook
from gt.session.session import Session, current_session
from gt.session.watched import Watched

#: The least number of seconds between two updates.
_LEAST = 0.1

#: How long `Watch.stop()` waits for the last update, in seconds.
_STOPS_WITHIN = 2.0


def watch(*, every: float = 1.0, seconds: float | None = None) -> "Watch":
    """Show the workers and your sessions, live.

    Your sessions are those of your key, or of your login if your key is no user's. In a notebook,
    the cell shows tables that update themselves while other cells run. The updates end when the
    cell runs again, when another cell watches the same session, after `Watch.stop()`, and when the
    session ends. Elsewhere the tables are printed again and again, until Ctrl-C.

    Args:
        every: seconds between updates, at least 0.1.
        seconds: how long to watch; None for no limit.

    Returns:
        The view, which `stop()` ends. Outside of a notebook it has ended.

    Raises:
        ConnectionError: the session is closed, or the connection to the server is lost.
        ValueError: a number of seconds is out of range.

    Example:
        >>> view = gt.watch(seconds=0)  # doctest: +ELLIPSIS
        this process, 1 worker(s), up ...
        >>> view
        <gt.Watch: ended, its time is over>
    """
    limit = math.inf if seconds is None else _in_seconds("seconds", seconds, 0)
    view = Watch(_in_seconds("every", every, _LEAST), limit)
    if notebook.is_notebook():
        view._show()
    else:
        view._print()
    return view


def _in_seconds(name: str, given: Any, least: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"watch: {name} is {brief(given)}, expected a number of seconds")
    if not least <= given < math.inf:
        raise ValueError(f"watch: {name} is {given}, expected {least} seconds or more")
    return float(given)


class Watch:
    """A view of the workers and of one's own sessions, as `gt.watch()` returns it."""

    def __init__(self, every: float, limit: float):
        self._every, self._until = every, time.monotonic() + limit
        self._ends = threading.Event()
        self._reason = ""
        #: The session to enter for a look; None for the one that the running thread uses.
        self._session: Session | None = None
        self._seen = self._look()
        #: In a notebook: what identifies the cell, the number of its run, and how it is updated.
        self._cell: frozenset[str] = frozenset()
        self._count = 0
        self._handle: Any = None
        self._thread: threading.Thread | None = None

    @property
    def ended(self) -> bool:
        """Whether it is updated no more."""
        return self._ends.is_set()

    def stop(self) -> None:
        """End the updates; what is shown stays. Stopping again does nothing."""
        self._end("stopped")
        if self._thread is not None:
            self._thread.join(_STOPS_WITHIN)

    def __repr__(self) -> str:
        return f"<gt.Watch: {f'ended, {self._reason}' if self.ended else 'live'}>"

    def _ipython_display_(self) -> None:
        """Show it in one more cell; its own shows it already."""
        if self._handle is None:
            print(self)
        elif notebook.shell().execution_count != self._count:
            self._handle.display(self._seen.bundle(), raw=True)

    def _look(self) -> Watched:
        with self._session.use() if self._session else contextlib.nullcontext():
            return Watched(_gt.get_status(), _gt.current_session().name)

    def _end(self, reason: str) -> None:
        if not self._ends.is_set():
            self._reason = reason
            self._ends.set()

    def _is_next(self) -> bool:
        """Wait until the next look; return whether there is one."""
        left = self._until - time.monotonic()
        if not self._ends.wait(max(0, min(self._every, left))) and left <= self._every:
            self._end("its time is over")
        return not self.ended

    def _print(self) -> None:
        """Print the tables until the end."""
        try:
            print(self._seen, flush=True)
            while self._is_next():
                print(f"\n{self._look()}", flush=True)
        except KeyboardInterrupt:
            self._end("interrupted")

    def _show(self) -> None:
        """Show the tables in a cell, and begin to update them."""
        session, follows = current_session(), _session_of_process()
        if session._open.number == follows:
            # The view follows `gt.connect`, and does not keep a session open.
            key = None
        else:
            self._session, key = session, session._open.number
        self._cell, self._count = notebook.running_cell(), notebook.shell().execution_count
        notebook.before_each_cell(_end_views_of)
        with _LOCK:
            before, _LIVE[key] = _LIVE.get(key), self
        if before is not None:
            before._end("another cell shows the same")
        self._seen.state = "live"
        self._handle = notebook.display_live(self._seen.bundle())
        # A daemon, so that it does not keep the process alive.
        self._thread = threading.Thread(
            target=self._update, args=(key,), name="gt.watch", daemon=True
        )
        self._thread.start()

    def _update(self, key: int | None) -> None:
        """Update the cell until the end; runs in a thread of its own."""
        try:
            while self._is_next():
                self._seen = self._look()
                self._seen.state = "live"
                self._handle.update(self._seen.bundle(), raw=True)
        except Exception as error:
            self._end(str(error).partition("\n")[0])
        self._session = None
        with _LOCK:
            if _LIVE.get(key) is self:
                del _LIVE[key]
        self._seen.state = f"ended: {self._reason}"
        # A kernel that ends no longer takes the last update.
        with contextlib.suppress(Exception):
            self._handle.update(self._seen.bundle(), raw=True)


#: The views that are updated, by the number of their session; that of the one that follows the
#: process's session is None.
_LIVE: dict[int | None, Watch] = {}
_LOCK = threading.Lock()


def _session_of_process() -> int | None:
    """Return the number of the session that threads use which have not selected one."""
    found: list[int] = []
    thread = threading.Thread(
        target=lambda: found.append(_gt.current_session().number), daemon=True
    )
    thread.start()
    thread.join(_STOPS_WITHIN)
    return found[0] if found else None


def _end_views_of(cell: frozenset[str]) -> None:
    """End the views in a cell that runs again."""
    for view in [*_LIVE.values()]:
        if view._cell & cell:
            view._end("its cell runs again")


def _end_all() -> None:
    """End all views when the process ends."""
    for view in [*_LIVE.values()]:
        view._end("the process ends")


def _forget() -> None:
    """Forget the views in a forked process: their threads are its parent's."""
    global _LOCK
    _LOCK = threading.Lock()
    for view in _LIVE.values():
        # Its thread may have held the lock of the event at the fork.
        view._ends = threading.Event()
        view._end("its process has forked this one")
    _LIVE.clear()


atexit.register(_end_all)
os.register_at_fork(after_in_child=_forget)
