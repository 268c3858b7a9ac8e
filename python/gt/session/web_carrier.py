"""A program that carries connections of a socket through a page's port until its input ends.

It is run as a script, without the package: `python -I web_carrier.py FOLDER DESCRIPTOR PATH`, where
FOLDER has the package websockets, and DESCRIPTOR is the listening socket of PATH. The program that
starts it holds the other end of its standard input: so the tunnel ends with that program, however
that ends.

The first line of its input is what to connect to, in JSON, as a token is not for command lines.
Each further line is a number, and asks for a look whether a server answers; a line of its output
says so, with the number, and `null` or why none does. A new look ends an earlier one.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import sys
import threading
from pathlib import Path
from typing import Any

#: How long a connection to the page may take, and the server behind it to speak, in seconds.
_OPEN_WITHIN = 20.0
_ANSWER_WITHIN = 5.0

#: How long the end of a connection may take, in which its last bytes arrive.
_END_WITHIN = 3.0

#: How long clients are refused after the server was gone, in seconds: a client gives up a server
#: without a saved state that refuses it for 2 s.
_REFUSE_FOR = 3.0

#: The bytes that are read from a client at once, and those that may wait for a slow page.
_CHUNK = 256 << 10

#: The longest message of a page, and how many of them may wait for a slow client.
_LONGEST = 1 << 20
_WAITING = 8

#: What a page, or the proxy before it, answers while no server listens.
_GONE = (502, 503)


class Carrier:
    """A listening socket whose connections lead to a server behind a page."""

    def __init__(self, endpoint: str, token: str, path: Path):
        self._endpoint, self._path = endpoint, path
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._is_encrypted = endpoint.startswith("wss:")
        self._ssl = ssl.create_default_context() if self._is_encrypted else None
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Future[None]] = set()

    async def listen(self, listener: socket.socket | None = None) -> None:
        """Accept clients, at the path unless a socket is given."""
        options: dict[str, Any] = {"path": str(self._path)} if listener is None else {}
        self._server = await asyncio.start_unix_server(
            self._carry, sock=listener, limit=_CHUNK, **options
        )

    async def look(self) -> dict[str, Any] | None:
        """Return why no server answers, or None."""
        try:
            async with await self._open() as page:
                try:
                    # A server of GT speaks first.
                    await asyncio.wait_for(page.recv(decode=False), _ANSWER_WITHIN)
                except (_websockets.ConnectionClosed, asyncio.TimeoutError):
                    return {"kind": "silent"}
        except Exception as error:
            return described(error)
        return None

    async def _open(self) -> Any:
        """Return a new connection to the server."""
        page = await _Connect(
            self._endpoint,
            subprotocols=["gt"],
            additional_headers=self._headers,
            compression=None,
            proxy=True if self._is_encrypted else None,
            ssl=self._ssl,
            open_timeout=_OPEN_WITHIN,
            close_timeout=_END_WITHIN,
            # Clients and servers send heartbeats of their own.
            ping_interval=None,
            max_size=_LONGEST,
            max_queue=_WAITING,
            write_limit=_CHUNK,
        )
        if page.subprotocol != "gt":
            await page.close()
            raise _websockets.InvalidHandshake("the WebSocket there is not one of GT")
        return page

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client; it is only cut off if that fails, and then tries again."""
        task = asyncio.ensure_future(self._connect(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            page = await self._open()
        except Exception as error:
            writer.transport.abort()
            if self._is_gone(described(error)):
                await self._refuse()
            return
        to_page = asyncio.ensure_future(_to_the_page(reader, page))
        # It ends when all that the page has sent is written, or the client has left.
        await _to_the_client(page, writer)
        writer.close()
        await asyncio.wait([to_page], timeout=_END_WITHIN)
        to_page.cancel()
        # Whatever is not taken by then stays unsent.
        writer.transport.abort()
        page.transport.abort()

    async def end(self) -> None:
        """Let open connections bring what their clients have sent last."""
        if self._server is not None:
            self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_END_WITHIN)

    def _is_gone(self, failure: dict[str, Any]) -> bool:
        """Return whether no server listens: a network that is away is waited for instead."""
        is_refused = failure["kind"] == "refused" and not self._is_encrypted
        return is_refused or failure.get("status") in _GONE

    async def _refuse(self) -> None:
        """Refuse clients for a while, as the server would itself."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        self._path.unlink(missing_ok=True)
        await asyncio.sleep(_REFUSE_FOR)
        await self.listen()


async def _to_the_page(reader: asyncio.StreamReader, page: Any) -> None:
    try:
        while data := await reader.read(_CHUNK):
            await page.send(data)
    except (OSError, _websockets.ConnectionClosed):
        pass
    await page.close()


async def _to_the_client(page: Any, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            writer.write(await page.recv(decode=False))
            await writer.drain()
    except (OSError, _websockets.ConnectionClosed):
        return


def described(error: Exception) -> dict[str, Any]:
    """Return why a connection failed, as the package reads it."""
    text = str(error) or type(error).__name__
    match error:
        case _websockets.InvalidStatus(response=response):
            to = response.headers.get("Location", "")
            return {"kind": "status", "status": response.status_code, "to": to}
        case _websockets.ProxyError() | _websockets.InvalidProxy() | ImportError():
            return {"kind": "proxy", "text": text}
        case _websockets.InvalidHandshake():
            return {"kind": "other", "text": text}
        case ssl.SSLCertVerificationError():
            return {"kind": "certificate", "text": error.verify_message or text}
        case ssl.SSLError():
            return {"kind": "tls", "text": error.reason or text}
        case TimeoutError() | asyncio.TimeoutError():
            return {"kind": "timeout", "text": f"no answer in {_OPEN_WITHIN:g} s"}
        case ConnectionRefusedError():
            return {"kind": "refused", "text": text}
        case OSError():
            return {"kind": "network", "text": text}
        case _:
            return {"kind": "other", "text": f"{type(error).__name__}: {text}"}


async def main(descriptor: int, path: Path) -> None:
    """Carry until the input ends."""
    carrier = Carrier(**json.loads(sys.stdin.buffer.readline()), path=path)
    await carrier.listen(socket.socket(fileno=descriptor))
    loop = asyncio.get_running_loop()
    looks: list[asyncio.Future[None]] = []
    has_ended = asyncio.Event()

    def read() -> None:
        while line := sys.stdin.buffer.readline():
            loop.call_soon_threadsafe(look, int(line))
        loop.call_soon_threadsafe(has_ended.set)

    def look(number: int) -> None:
        end_look()
        looks.append(asyncio.ensure_future(answer(number)))

    def end_look() -> None:
        while looks:
            looks.pop().cancel()

    async def answer(number: int) -> None:
        print(json.dumps([number, await carrier.look()]), flush=True)

    threading.Thread(target=read, daemon=True).start()
    await has_ended.wait()
    end_look()
    await carrier.end()
    # What does not end by itself is not waited for.
    os._exit(0)


if __name__ == "__main__":
    # The package may be where only the program that starts this one looks.
    sys.path.insert(0, sys.argv[1])
    import websockets.exceptions as _websockets
    from websockets.asyncio.client import connect

    class _Connect(connect):
        """A connection that follows no redirect: another host is not what was asked for."""

        def process_redirect(self, exc: Exception) -> Exception:
            """Return the error: it names where the redirect leads."""
            return exc

    asyncio.run(main(int(sys.argv[2]), Path(sys.argv[3])))
