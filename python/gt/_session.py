"""Sessions as objects: `gt.Session`."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from types import TracebackType
from weakref import WeakValueDictionary

from gt import _gt


class Session:
    """A connection to a server, or workers in this process: where tensors are made.

        with gt.Session("localhost:12345") as session:
            print(gt.ones(3).sum().item())

    Inside the block, new tensors of this thread belong to the session. At its end the session is
    closed, and the thread uses what it used before. Blocks may be nested. A session that is open
    may be given to other threads, which enter it with `use()`.

    Args:
        address: the server, as `HOST:PORT` or `ipc:///PATH`; None for workers in this process.
        key_file: file with the key for the server, instead of `GT_KEY` or the one that is found.
        insecure: the server was started with `--insecure`.
        workers: how many, in this process; None for one on each GPU, or one.
        slots: how many parts tensors are cut into, whatever workers there are; None for as many
            as there are workers when something is first cut.
        elastic: whether each worker that joins later adds a slot.

    Raises:
        ConnectionError: the address is not valid, nothing answers there, or the key is refused.
        ValueError: no worker is asked for; workers with an address, or a key without one.
    """

    _open: _gt.OpenSession

    def __init__(
        self,
        address: str | None = None,
        key_file: str | PathLike[str] | None = None,
        insecure: bool = False,
        *,
        workers: int | None = None,
        slots: int | None = None,
        elastic: bool | None = None,
    ):
        if address is not None and workers is not None:
            raise ValueError(
                f"Session: workers={workers} given with the address {address!r}, but a server "
                "has workers of its own\n  hint: leave one of them out"
            )
        if address is None and (key_file is not None or insecure):
            given = "insecure=True" if key_file is None else f"key_file={str(key_file)!r}"
            raise ValueError(
                f"Session: {given} given without an address, but workers in this process "
                "need no key\n  hint: gt.Session('HOST:PORT', ...)"
            )
        self._open = _gt.open_session(address, key_file, insecure, workers, slots, elastic)
        _KNOWN[self._open.number] = self

    @staticmethod
    def of(tensor: _gt.Tensor) -> "Session":
        """Give the session that a tensor belongs to."""
        return Session._around(_gt.session_of(tensor))

    @staticmethod
    def _around(opened: _gt.OpenSession) -> "Session":
        known = _KNOWN.get(opened.number)
        if known is not None:
            return known
        session = Session.__new__(Session)
        session._open = opened
        return _KNOWN.setdefault(opened.number, session)

    @contextmanager
    def use(self) -> Iterator["Session"]:
        """Have this thread use the session inside a block, which does not close it.

            def work(session, batch):
                with session.use():
                    return gt.from_numpy(batch).sum().item()

        Raises:
            ConnectionError: the session is closed.
        """
        self._open.enter(False)
        try:
            yield self
        finally:
            self._open.leave()

    def __enter__(self) -> "Session":
        self._open.enter(True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self._open.leave()
        finally:
            self._open.close()

    def close(self) -> None:
        """End the session for all threads: its tensors are gone. Closing again does nothing."""
        self._open.close()

    @property
    def closed(self) -> bool:
        """Whether the session was closed here; a server that is gone shows when it is used."""
        return self._open.closed

    def rescale(self, slots: int | None = None, elastic: bool | None = None) -> None:
        """Set how many slots the session's tensors are cut over from now on: see `gt.rescale`."""
        self._open.rescale(slots, elastic)

    def synchronize(self) -> None:
        """Wait until all is computed that was issued to the session.

        Raises:
            ConnectionError: the session is closed, or the server is gone.
        """
        self._open.synchronize()

    def manual_seed(self, seed: int) -> None:
        """Start the session's random numbers anew: the same seed gives the same numbers.

        Raises:
            ConnectionError: the session is closed.
        """
        self._open.manual_seed(seed)

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<gt.Session {self._open.number}: {self._open.place}{closed}>"


#: The one object of each session that has one.
_KNOWN: WeakValueDictionary[int, Session] = WeakValueDictionary()


def current_session() -> Session:
    """Give the session that new tensors of this thread belong to.

    It is that of the innermost block, else the one that this thread has connected to, else that of
    the main thread. Where there is none yet, one starts in this process.

        session = gt.current_session()
        thread = threading.Thread(target=work, args=(session, batch))

    Raises:
        ConnectionError: the session is closed.
    """
    return Session._around(_gt.current_session())
