"""Web pages that tests read: their links, files and streams."""

import json
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: The time limit for what a test waits for.
LIMIT = 60.0


class WebPage:
    """A page that is served, by its link."""

    def __init__(self, link: str):
        self.link = link
        self.base, self.token = link.split("/#token=")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", self.base), link
        assert re.fullmatch(r"[0-9a-f]{32}", self.token), link

    def request(self, path: str, token: str | None = None) -> urllib.request.Request:
        """Return a request with a token: that of the page, unless another is given."""
        headers = {"Authorization": f"Bearer {token or self.token}"}
        return urllib.request.Request(self.base + path, headers=headers)

    def read(self, path: str) -> str:
        """Return what is at a path."""
        status, body = answer_to(self.request(path))
        assert status == 200, (path, status)
        return body

    @contextmanager
    def events(self) -> Iterator[Iterator[tuple[str, dict[str, Any]]]]:
        """Yield an iterator over the events, as names and data."""
        with urllib.request.urlopen(self.request("/events"), timeout=LIMIT) as answer:
            yield _events(answer)

    def wait_for(self, what: str, accepts: Callable[[str, dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the data of the first event that is accepted."""
        until = time.monotonic() + LIMIT
        with self.events() as events:
            for name, data in events:
                if accepts(name, data):
                    return data
                assert time.monotonic() < until, f"{what}; the last: {name} {data}"
        raise AssertionError(f"{what}: the stream has ended")


@contextmanager
def gt_web(*options: str) -> Iterator[tuple[WebPage, subprocess.Popen]]:
    """Yield the page that `gt web` serves, and its process."""
    command = [sys.executable, "-m", "gt", "web", "--listen", "0", *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            line = process.stdout.readline()
            assert line.startswith("gt web: "), (line, process.stderr.read())
            yield WebPage(line.split()[-1]), process
        finally:
            process.kill()
            process.communicate()


def answer_to(request: urllib.request.Request) -> tuple[int, str]:
    """Return the status and the body of an answer, which may be an error."""
    try:
        with urllib.request.urlopen(request, timeout=LIMIT) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def _events(lines: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in lines:
        kind, _, value = line.decode().rstrip("\n").partition(": ")
        if kind == "event":
            name = value
        elif kind == "data":
            yield name, json.loads(value)


def acting_link_of_server(server: subprocess.Popen) -> str:
    """Return the link for operators, which a server with `--web-actions` prints after the other."""
    assert server.stdout is not None
    line = next(server.stdout)
    assert "to act:" in line, line
    return str(line.split()[-1])


def page_of_server(server: subprocess.Popen) -> WebPage:
    """Return the page of a server that was started with `--web 0`, from what it prints."""
    assert server.stdout is not None
    for line in server.stdout:
        if "a browser:" in line:
            return WebPage(line.split()[-1])
    raise AssertionError("the server has printed no link")
