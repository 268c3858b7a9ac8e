"""Sessions as objects: `gt.Session`."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from types import TracebackType
from typing import Any
from weakref import WeakValueDictionary

from gt import _gt
from gt.session import program  # noqa: F401 - connecting needs no further file


class Session:
    """A connection to a server, or workers in this process, to which tensors belong.

        with gt.Session("localhost:12345") as session:
            print(gt.ones(3).sum().item())

    Inside the block, new tensors of this thread belong to the session. At the end of the block the
    session is closed, and the thread uses its previous session again. Blocks may be nested. An open
    session may be passed to other threads, which enter it with `use()`.

    Args:
        address: the server, as `HOST:PORT` or `ipc:///PATH`; None for workers in this process.
        key_file: file with the key for the server, instead of `GT_KEY` or the default key file.
        insecure: whether the server was started with `--insecure`.
        workers: the number of workers in this process; None for one on each GPU, or one.
        slots: the number of shards of a tensor, independent of the number of workers; None for the
            number of workers at the time when a tensor is first sharded.
        elastic: whether each worker that joins later adds a slot.
        name: the session's name in `gt top`, logs and messages, as `run-12`; None for the name of
            the script, module or notebook.

    Raises:
        ConnectionError: the address is not valid, no server answers, or the key is refused.
        ValueError: `workers` is 0, or passed with an address; a key is passed without one; or the
            name is empty, too long, or has characters that cannot be shown.
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
        name: str | None = None,
    ):
        if address is not None and workers is not None:
            from gt.session.shown_address import without_secret

            raise ValueError(
                f"Session: workers={workers} given with the address "
                f"{without_secret(address)!r}, but a server "
                "has its own workers\n  hint: leave one of them out"
            )
        if address is None and (key_file is not None or insecure):
            given = "insecure=True" if key_file is None else f"key_file={str(key_file)!r}"
            raise ValueError(
                f"Session: {given} given without an address, but workers in this process "
                "need no key\n  hint: gt.Session('HOST:PORT', ...)"
            )
        self._open = _gt.open_session(address, key_file, insecure, workers, slots, elastic, name)
        _KNOWN[self._open.number] = self

    @staticmethod
    def of(tensor: _gt.Tensor) -> "Session":
        """Return the session that a tensor belongs to."""
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
        """Use the session in this thread for the length of a block, without closing it.

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
        """End the session for all threads and free its tensors. Closing again does nothing."""
        self._open.close()

    @property
    def name(self) -> str:
        """The session's name in `gt top`, logs and messages: `train.py ada@box #3`."""
        return self._open.name

    @property
    def closed(self) -> bool:
        """Whether this process closed the session. A lost server is noticed at the next use."""
        return self._open.closed

    def rescale(self, slots: int | None = None, elastic: bool | None = None) -> None:
        """Set the number of slots that the session's tensors are sharded over: see `gt.rescale`."""
        self._open.rescale(slots, elastic)

    def synchronize(self) -> None:
        """Wait until all operations that were issued to the session are computed.

        Raises:
            ConnectionError: the session is closed, or the connection is lost.
        """
        self._open.synchronize()

    def manual_seed(self, seed: int) -> None:
        """Set the seed of the session's random numbers: the same seed yields the same numbers.

        Raises:
            ConnectionError: the session is closed.
        """
        self._open.manual_seed(seed)

    def __repr__(self) -> str:
        closed = ", closed" if self.closed else ""
        return f"<gt.Session {self._open.number}: {self._open.place}{closed}>"


#: The `Session` object of each session, by its number, so that a session has only one.
_KNOWN: WeakValueDictionary[int, Session] = WeakValueDictionary()


def current_session() -> Session:
    """Return the session that new tensors of this thread belong to.

    That is the session of the innermost block, else the one that this thread has connected to, else
    that of the main thread. If none exists yet, one is started in this process.

        session = gt.current_session()
        thread = threading.Thread(target=work, args=(session, batch))

    Raises:
        ConnectionError: the session is closed.
    """
    return Session._around(_gt.current_session())


def workers(count: int) -> None:
    """Set the number of workers that a program without a connection runs in its own process.

    The workers start with the next tensor of a thread that has not connected, on GPUs if there are
    any. After `gt.disconnect()` the number can be set again.

    Args:
        count: the number of workers.

    Raises:
        RuntimeError: workers have started already.
        ValueError: the number is less than 1.
    """
    _gt.set_workers(whole_number("workers", count), "workers")


def gpu_workers(count: int | None = None, *, n: int | None = None) -> None:
    """Set the number of workers, as `gt.workers` does.

    Args:
        count: the number of workers.
        n: an alias of `count` from early versions.

    Raises:
        RuntimeError: workers have started already.
        ValueError: the number is less than 1.
    """
    if (count is None) == (n is None):
        raise TypeError("gpu_workers: pass either count or n, its alias, and not both")
    given = count if count is not None else n
    _gt.set_workers(whole_number("gpu_workers", given), "gpu_workers")


def whole_number(name: str, given: Any) -> int:
    """Return a number of workers, or raise an error that names the function."""
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(
            f"{name}: the number of workers is {given!r}, expected an int\n  hint: gt.{name}(4)"
        )
    return given
