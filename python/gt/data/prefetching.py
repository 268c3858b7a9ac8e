"""`prefetch`: the next batches are loaded and transferred while the present one is computed with.

A thread of its own takes batches from the source, at most so many ahead. It makes tensors of those
that are large in the session, and under the signal, of who begins the loop. Small ones are made
tensors where they are handed out: to transfer them takes less time than what is lost where
instructions of two threads mix, since a loop whose stream is not the same each time is no hot path.
"""

from __future__ import annotations

import queue
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

from gt import _gt
from gt import signal as signals
from gt._session import Session, current_session
from gt.data import convert

#: From how many bytes on a batch is transferred ahead.
_LARGE = 1 << 20
#: To make a tensor of an array holds Python's lock: who has just taken a batch, and has others, may
#: issue its work first, and an engine in this process begin with it.
_GIVE_WAY_SECONDS = 0.002
#: How often who waits looks whether the thread is alive: a forked child does not have it.
_LOOK_SECONDS = 1.0
#: How long the end of a loop waits for the thread, which may be reading.
_END_SECONDS = 0.2


class Prefetcher:
    """What `prefetch` gives: iterate over it as over its source, pass after pass."""

    def __init__(self, source: Iterable[Any], size: int):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"prefetch: size is {size!r}, expected a whole number of at least 1")
        if not hasattr(source, "__iter__"):
            raise TypeError(
                f"prefetch: {type(source).__name__} given, expected an iterable of batches"
            )
        self.source = source
        self.size = size
        self._given: Any = None

    def __iter__(self) -> Iterator[Any]:
        return _Pass(self)

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]

    def state_dict(self) -> Any:
        """Give where the source is, as seen by who takes the batches: those ahead do not count.

        Raises:
            AttributeError: the source cannot say where it is.
        """
        return self.source.state_dict() if self._given is None else self._given  # type: ignore

    def load_state_dict(self, state_dict: Any) -> None:
        """Have the source go on from where `state_dict` was.

        Raises:
            AttributeError: the source cannot.
        """
        self.source.load_state_dict(state_dict)  # type: ignore[attr-defined]
        self._given = None


def prefetch(iterable: Iterable[Any], size: int = 2) -> Prefetcher:
    """Load the next batches, and transfer them, while the present one is computed with.

    Arrays of numbers and tensors of PyTorch become tensors; dicts, lists and tuples are kept, and
    whatever else there is stays as it is. A source may be any iterable: a `DataLoader` (of PyTorch,
    too), a generator, a dataset of Hugging Face. An exception in it is raised where its batch would
    have been given. A loop that is left early ends the thread.

        for x, y in gt.data.prefetch(loader):
            loss = step(x, y)

    Args:
        iterable: what gives batches. Where it has `state_dict` and `load_state_dict`, what is given
            here has them, too, for the position of who takes the batches.
        size: how many batches are ahead at most.

    Raises:
        ValueError: `size` is not positive.

    >>> [x.tolist() for x in gt.data.prefetch(np.arange(2) + i for i in range(2))]
    [[0, 1], [1, 2]]
    """
    return Prefetcher(iterable, size)


class _Ahead:
    """What the thread and who takes the batches share."""

    def __init__(self, size: int, source: Iterator[Any]):
        self.source = source
        #: Batches, each with the source's position after it; or exceptions instead.
        self.batches: queue.SimpleQueue[tuple[Any, Any, BaseException | None]]
        self.batches = queue.SimpleQueue()
        self.room = threading.Semaphore(size)
        self.stopped = False


class _End(Exception):
    """The source has no more batches."""


class _Pass(Iterator[Any]):
    """One pass over a source."""

    def __init__(self, owner: Prefetcher):
        self._owner = owner
        # Begun in this thread: orders are drawn from its random numbers.
        self._ahead = _Ahead(owner.size, iter(owner.source))
        owner._given = _position(owner.source)
        self._thread = threading.Thread(
            target=_pull,
            args=(self._ahead, owner.source, current_session(), _gt.signal_current()),
            name="gt-prefetch",
            daemon=True,
        )
        self._thread.start()
        self._finalizer = weakref.finalize(self, _stop, self._ahead, self._thread)

    def __next__(self) -> Any:
        if self._ahead.stopped:
            raise StopIteration
        batch, state, error = self._take()
        self._owner._given = state
        self._ahead.room.release()
        if isinstance(error, _End):
            self.close()
            raise StopIteration
        if error is not None:
            raise error
        return convert.to_tensors(batch, everything=True)

    def _take(self) -> tuple[Any, Any, BaseException | None]:
        while True:
            try:
                return self._ahead.batches.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                if not self._thread.is_alive() and self._ahead.batches.empty():
                    self.close()
                    raise RuntimeError(
                        "prefetch: its thread is gone, as in a process that was forked from the "
                        "one that had begun the loop\n  hint: begin the loop in this process"
                    ) from None

    def close(self) -> None:
        """End the thread: no more batches are given."""
        self._finalizer()


def _stop(ahead: _Ahead, thread: threading.Thread) -> None:
    """Have the thread end."""
    ahead.stopped = True
    ahead.room.release()
    # A loader that waits for its workers.
    stop = getattr(ahead.source, "stop", None)
    if callable(stop):
        stop()
    if thread is not threading.current_thread():
        thread.join(_END_SECONDS)


def _pull(
    ahead: _Ahead, source: Any, session: Session, signal: tuple[str | None, str | None]
) -> None:
    """Take batches from the source, as long as there is room and somebody wants them."""
    name, backward = signal
    scope = nullcontext() if name is None else signals.context(name, backward)
    try:
        with session.use(), scope, convert.arrays_only():
            while True:
                ahead.room.acquire()
                if ahead.stopped:
                    return
                try:
                    batch = next(ahead.source)
                    if _bytes(batch) >= _LARGE:
                        if not ahead.batches.empty():
                            time.sleep(_GIVE_WAY_SECONDS)
                        batch = convert.to_tensors(batch, everything=True)
                    error: Exception | None = None
                except StopIteration:
                    batch, error = None, _End()
                except Exception as raised:
                    batch, error = None, raised
                ahead.batches.put((batch, _position(source), error))
                if isinstance(error, _End):
                    return
                # While it waits for room, the thread holds no batch.
                del batch, error
    except BaseException as raised:
        ahead.batches.put((None, None, raised))
        ahead.batches.put((None, None, _End()))
    finally:
        if ahead.stopped and hasattr(ahead.source, "close"):
            ahead.source.close()
        ahead.source = iter(())


def _position(source: Any) -> Any:
    """Give where a source is; None if it cannot say."""
    position = getattr(source, "state_dict", None)
    try:
        return position() if callable(position) else None
    except RuntimeError:
        # A loader whose batches come in no order.
        return None


def _bytes(batch: Any) -> int:
    """Give how many bytes of a batch become tensors."""
    return sum(leaf.nbytes for leaf in convert.leaves(batch) if convert.becomes_tensor(leaf))
