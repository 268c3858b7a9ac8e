"""The rounds of a program that computes until a line is read."""

import sys
import threading
from collections.abc import Iterator

#: Seconds between two rounds, in which what is tested has the processors.
PAUSE = 0.01


def until_a_line() -> Iterator[None]:
    """Yield once for each round; after the first one, print that the program is at work."""
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), ended.set()), daemon=True).start()
    yield
    print("at work", flush=True)
    while not ended.wait(PAUSE):
        yield
