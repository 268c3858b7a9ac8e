"""A value that a thread sets and coroutines wait for."""

from __future__ import annotations

import asyncio
import threading


class Awaited:
    """A text that changes. Any thread sets it; the coroutines of an actor wait for a change."""

    def __init__(self) -> None:
        """Begin without a text."""
        self._text: str | None = None
        self._lock = threading.Lock()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def text(self) -> str | None:
        """Return the text, or None before there is one."""
        return self._text

    def set(self, text: str | None) -> None:
        """Set the text and wake those that wait."""
        with self._lock:
            self._text = text
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            loop.call_soon_threadsafe(_wake, future)

    async def changed(self, known: str | None, limit: float) -> str | None:
        """Return the text as soon as it differs from a known one, or after a limit in seconds."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._text != known:
                return self._text
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append((loop, future))
        try:
            await asyncio.wait_for(future, limit)
        except asyncio.TimeoutError:
            with self._lock:
                self._waiting = [entry for entry in self._waiting if entry[1] is not future]
        return self._text


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
