"""GPU time of a worker's turns, measured by two events around each turn."""

from collections import deque
from collections.abc import Callable
from typing import Any


class Turns:
    """A timer of turns in a GPU stream.

    `event` creates an event with timing; `stream` returns the stream of kernels.
    """

    def __init__(self, event: Callable[[], Any], stream: Callable[[], Any]):
        self._event = event
        self._stream = stream
        self._spare: list[Any] = []
        self._begun: Any = None
        self._under_way: deque[tuple[Any, Any]] = deque()

    def begin(self) -> None:
        """Record the begin of a turn."""
        self._begun = self._record()

    def end(self) -> None:
        """Record the end of a turn."""
        self._under_way.append((self._begun, self._record()))

    def done(self, under_way: int) -> list[int]:
        """Return the nanoseconds of completed turns; wait until at most `under_way` are not."""
        taken = []
        while self._under_way:
            begun, ended = self._under_way[0]
            if len(self._under_way) > under_way:
                ended.synchronize()
            elif not ended.query():
                break
            taken.append(int(begun.elapsed_time(ended) * 1e6))
            self._under_way.popleft()
            self._spare += begun, ended
        return taken

    def _record(self) -> Any:
        event = self._spare.pop() if self._spare else self._event()
        event.record(self._stream())
        return event
