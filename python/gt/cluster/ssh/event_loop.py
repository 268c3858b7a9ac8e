"""An event loop in a thread of its own, for clients that are written with asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

Result = TypeVar("Result")


class EventLoop:
    """Runs coroutines for threads that wait for them, until it is closed."""

    def __init__(self, name: str):
        """Start it, in a thread of this name."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result], limit: float | None = None) -> Result:
        """Return a coroutine's result; it is cancelled when the caller is interrupted.

        Raises:
            TimeoutError: the limit in seconds is over.
        """
        future = self.begin(asyncio.wait_for(work, limit))
        try:
            return future.result()
        except (TimeoutError, asyncio.TimeoutError):
            raise TimeoutError(f"not done in {limit} s") from None
        except BaseException:
            future.cancel()
            raise

    def begin(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Start a coroutine; return at once."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancel what still runs, and end the thread."""

        async def cancel() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.wait(others, timeout=2) if others else None

        self.begin(cancel()).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()
