"""Time limits, and the handling of signals that end the demo."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager


class DemoError(Exception):
    """An error that ends the demo; its text is the reason."""


@contextmanager
def limit(seconds: float, awaited: str) -> Iterator[None]:
    """Interrupt a block after a time limit. For the main thread only, and not nested.

    Args:
        seconds: the time limit of the block.
        awaited: what the block waits for, as the error names it.

    Raises:
        DemoError: the block exceeds its limit.
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
    """Turn SIGTERM into an exception inside the block, so that its `finally` clauses run."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
