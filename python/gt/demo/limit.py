"""Limits for waits, and the signals that end the demo."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class DemoError(Exception):
    """The demo cannot go on; the text tells why."""


@contextmanager
def limit(seconds: float, awaited: str) -> Iterator[None]:
    """Interrupt a block that takes longer; for the main thread, and not nested.

    Args:
        seconds: how long the block may take.
        awaited: what the block waits for, for the error's text.

    Raises:
        DemoError: the time is over.
    """

    def interrupt(*_: object) -> None:
        raise DemoError(f"waited {seconds:g} s for {awaited}")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def clean_end() -> Iterator[None]:
    """Make SIGTERM end the block as an exception does, so that its `finally` clauses run."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
