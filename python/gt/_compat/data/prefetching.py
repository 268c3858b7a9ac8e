"""`prefetch`: load and transfer the next batches while the program computes with the current one.

A background thread reads batches from the source, up to a given number in advance. It converts
large batches to tensors, in the session and under the signal of the thread that started the loop.
Small batches are converted by the consumer: transferring them costs less than interleaving the
instructions of two threads, which makes the stream differ between iterations and so prevents a hot
path.
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
from gt._gt import public_function
from gt.session.session import Session, current_session

from . import convert

#: The size in bytes from which a batch is transferred by the background thread.
_LARGE = 1 << 20
#: Converting an array to a tensor holds the GIL. If other batches are ready, the thread sleeps this
#: long first, so that the consumer can issue its work and an engine in this process start on it.
_GIVE_WAY_SECONDS = 0.002
#: How often a waiting consumer checks that the thread is alive, which it is not in a forked child.
_LOOK_SECONDS = 1.0
#: How long the end of a loop waits for the thread, which may be reading the source.
_END_SECONDS = 0.2


class Prefetcher:
    """The result of `prefetch`: an iterable over the batches of its source."""

    def __init__(self, source: Iterable[Any], size: int):
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"prefetch: size is {size!r}, expected an integer of at least 1")
        if not hasattr(source, "__iter__"):
            raise TypeError(
                f"prefetch: got {type(source).__name__}, expected an iterable of batches"
            )
        self.source = source
        self.size = size
        self._given: Any = None

    def __iter__(self) -> Iterator[Any]:
        return _Pass(self)

    def __len__(self) -> int:
        return len(self.source)  # type: ignore[arg-type]

    def state_dict(self) -> Any:
        """Return the source's state after the last batch that the consumer took.

        Raises:
            AttributeError: the source has no `state_dict`.
        """
        return self.source.state_dict() if self._given is None else self._given  # type: ignore

    def load_state_dict(self, state_dict: Any) -> None:
        """Restore the source's state, as returned by `state_dict`.

        Raises:
            AttributeError: the source has no `load_state_dict`.
        """
        self.source.load_state_dict(state_dict)  # type: ignore[attr-defined]
        self._given = None


def prefetch(iterable: Iterable[Any], size: int = 2) -> Prefetcher:
    """Load and transfer the next batches while the program computes with the current one.

    Arrays of numbers and PyTorch tensors become tensors; dicts, lists and tuples keep their
    structure, and other values are unchanged. The source may be any iterable: a `DataLoader` (also
    PyTorch's), a generator, a Hugging Face dataset. An exception in the source is raised in place
    of its batch. Leaving the loop early ends the background thread.

        for x, y in gt.data.prefetch(loader):
            loss = step(x, y)

    Args:
        iterable: the source of batches. If it has `state_dict` and `load_state_dict`, those of the
            result save and restore the consumer's position, not that of the background thread.
        size: the maximum number of batches to load in advance.

    Raises:
        ValueError: `size` is not positive.

    >>> [x.tolist() for x in gt.data.prefetch(np.arange(2) + i for i in range(2))]
    [[0, 1], [1, 2]]
    """
    return Prefetcher(iterable, size)


class _Ahead:
    """The state shared by the background thread and the consumer."""

    def __init__(self, size: int, source: Iterator[Any]):
        self.source = source
        #: Batches, or exceptions in place of them, each with the source's state after it.
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
        # iter() is called in this thread, because random orders are drawn from its generator.
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

    @public_function
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
                        "prefetch: its thread is gone: this process was forked from the one that "
                        "started the loop\n  hint: start the loop in this process"
                    ) from None

    def close(self) -> None:
        """End the background thread: no more batches are yielded."""
        self._finalizer()


def _stop(ahead: _Ahead, thread: threading.Thread) -> None:
    """Stop the background thread."""
    ahead.stopped = True
    ahead.room.release()
    # A DataLoader's pass may be waiting for its workers.
    stop = getattr(ahead.source, "stop", None)
    if callable(stop):
        stop()
    if thread is not threading.current_thread():
        thread.join(_END_SECONDS)


def _pull(
    ahead: _Ahead, source: Any, session: Session, signal: tuple[str | None, str | None]
) -> None:
    """Move batches from the source to the queue when there is room, until stopped."""
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
                # Drop the reference, so that the thread keeps no batch alive while it waits.
                del batch, error
    except BaseException as raised:
        ahead.batches.put((None, None, raised))
        ahead.batches.put((None, None, _End()))
    finally:
        if ahead.stopped and hasattr(ahead.source, "close"):
            ahead.source.close()
        ahead.source = iter(())


def _position(source: Any) -> Any:
    """Return a source's state, or None if it has none."""
    position = getattr(source, "state_dict", None)
    try:
        return position() if callable(position) else None
    except RuntimeError:
        # A DataLoader with in_order=False.
        return None


def _bytes(batch: Any) -> int:
    """Return the number of bytes in a batch that become tensors."""
    return sum(leaf.nbytes for leaf in convert.leaves(batch) if convert.becomes_tensor(leaf))
