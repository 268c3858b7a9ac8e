"""Measure what open web pages cost a server with many workers and sessions.

Server, workers of one thread and programs are separate processes. The pages are readers of the
stream of updates, as browsers are; the sides take turns, and each round begins with another one.
Writes the part "The web page" of docs/benchmarks.md.
"""

import argparse
import os
import selectors
import socket
import statistics
import sys
import textwrap
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path

from programs import Asked
from sides import write_part

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster
from web_pages import WebPage, page_of_server

HEADING = "## The web page"
#: The text before the table, and the width of its lines.
HEAD = (
    "A server with {workers} workers of one thread and {sessions} sessions, each of which computes "
    "once in {pause:.0f} s, on {cores} cores; medians of {rounds} alternating windows of "
    "{seconds:.0f} s, as parts of one core. A page is a reader of the stream of updates. Links are "
    "the threads that send and encrypt; the longest pause is that between two updates of a reader "
    "that reads. The load of the machine was {load:.1f} (median). Made by"
)
COMMAND = "`python benches/web_cost.py --write docs/benchmarks.md`."
WIDTH = 120
#: The programs that hold the sessions.
PROGRAMS = 5
#: The seconds in which each session computes once.
PAUSE = 2.0
#: The time before a measurement in which the page begins or ends to ask, in seconds. It asks for
#: ten seconds after its last reader has gone.
SETTLES = 12.0
#: The bytes that a reader takes at a time.
PART = 1 << 16

#: Readers of each side, and readers that do not read.
SIDES = {
    "no page": (0, 0),
    "one page": (1, 0),
    "100 pages": (100, 0),
    "one, and one that does not read": (1, 1),
}
GOALS = {"one page": "1 %", "100 pages": "5 %"}


def thread_times(pid: int) -> dict[str, float]:
    """Return the seconds of processor time of a process's threads, by their group."""
    times: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            seconds = int((task / "schedstat").read_text().split()[0]) / 1e9
        except OSError:
            continue
        group = group_of(name, task.name == str(pid))
        times[group] = times.get(group, 0.0) + seconds
    return times


def group_of(name: str, is_main: bool) -> str:
    """Return what a thread does: the server's main thread is the dispatcher's."""
    if name.startswith("gt-web"):
        return "page"
    return "dispatcher" if is_main else "links"


@dataclass
class Readers:
    """Readers of a page's stream of updates, in a thread."""

    page: WebPage
    count: int
    bytes: int = 0
    updates: int = 0
    #: When an update of the first reader ended, in seconds.
    times: list[float] = field(default_factory=list)

    @contextmanager
    def reading(self):
        """Read in the background."""
        selector = selectors.DefaultSelector()
        connections = [subscribed(self.page) for _ in range(self.count)]
        for number, connection in enumerate(connections):
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ, number)
        ends = threading.Event()
        thread = threading.Thread(target=self._read, args=(selector, ends))
        thread.start()
        try:
            yield self
        finally:
            ends.set()
            thread.join()
            for connection in connections:
                connection.close()

    def _read(self, selector: selectors.BaseSelector, ends: threading.Event) -> None:
        while not ends.is_set():
            for key, _ in selector.select(0.1):
                part = key.fileobj.recv(PART)  # type: ignore[union-attr]
                assert part, "the stream has ended"
                self.bytes += len(part)
                if key.data == 0 and b"event: status" in part:
                    self.updates += 1
                    self.times.append(time.monotonic())


def subscribed(page: WebPage) -> socket.socket:
    """Return a connection on which updates arrive."""
    host, port = page.base.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    head = f"GET /events HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {page.token}"
    connection.sendall(f"{head}\r\n\r\n".encode())
    return connection


@dataclass
class Window:
    """What was measured in some seconds: parts of a core, and the longest pause of an update."""

    dispatcher: float
    page: float
    links: float
    all: float
    longest: float
    bytes: float


def measure(server: int, page: WebPage, side: str, seconds: float) -> Window:
    """Return what a side costs in a window."""
    count, silent = SIDES[side]
    with ExitStack() as stack:
        for _ in range(silent):
            stack.enter_context(subscribed(page))
        readers = stack.enter_context(Readers(page, count).reading())
        time.sleep(SETTLES)
        readers.bytes = readers.updates = 0
        readers.times.clear()
        before, begin = thread_times(server), time.monotonic()
        time.sleep(seconds)
        after, took = thread_times(server), time.monotonic() - begin
        times = readers.times
        longest = max((b - a for a, b in zip(times, times[1:], strict=False)), default=0.0)
        per_update = readers.bytes / max(1, readers.updates) / max(1, count)
    spent = {name: (after[name] - before.get(name, 0.0)) / took for name in after}
    dispatcher, of_page, links = (spent.get(name, 0.0) for name in ("dispatcher", "page", "links"))
    total = dispatcher + of_page + links
    return Window(dispatcher, of_page, links, total, longest, per_update)


def median_of(windows: list[Window]) -> Window:
    """Return the medians of what was measured."""
    rows = map(astuple, windows)
    return Window(*map(statistics.median, zip(*rows, strict=True)))


def table(windows: dict[str, list[Window]]) -> list[str]:
    """Return the lines of the table: medians."""
    lines = [
        "| readers | dispatcher | page | links | all | more than without | goal | an update "
        "| longest pause |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    median = {side: median_of(all) for side, all in windows.items()}
    base = median["no page"].all
    for side, of in median.items():
        cells = [f"{100 * part:.2f} %" for part in (of.dispatcher, of.page, of.links, of.all)]
        more = "" if side == "no page" else f"**{100 * (of.all - base):.2f} %**"
        size = f"{of.bytes / 1000:.0f} KB" if of.bytes else ""
        pause = f"{of.longest:.2f} s" if of.longest else ""
        lines.append(
            f"| {side} | {' | '.join(cells)} | {more} | {GOALS.get(side, '')} | {size} | {pause} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=72)
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--write", type=Path, help="the page to write")
    args = parser.parse_args()
    options = ["--threads", "1", "--memory", "100MB"]
    windows: dict[str, list[Window]] = {side: [] for side in SIDES}
    with ExitStack() as stack:
        started = cluster(args.workers, "--web", "0", worker_options=options)
        address, processes = stack.enter_context(started)
        page = page_of_server(processes[0])
        script = Path(__file__).parent / "processes" / "idle_sessions.py"
        each = args.sessions // PROGRAMS
        for _ in range(PROGRAMS):
            command = [sys.executable, script, address, str(each), str(PAUSE)]
            program = Asked(command)
            stack.callback(program.stop, timeout=60)
            assert program.stdout.readline() == "ready\n"
        loads: list[float] = []
        for first in range(args.rounds):
            for at in range(len(SIDES)):
                side = [*SIDES][(first + at) % len(SIDES)]
                windows[side].append(measure(processes[0].pid, page, side, args.seconds))
                loads.append(os.getloadavg()[0])
                print(side, windows[side][-1], f"load {loads[-1]:.1f}", flush=True)
    lines = table(windows)
    print("\n".join(lines))
    if args.write:
        load = statistics.median(loads)
        head = HEAD.format(cores=os.cpu_count(), pause=PAUSE, load=load, **vars(args))
        write_part(args.write, HEADING, [*textwrap.wrap(head, WIDTH), COMMAND, "", *lines])


if __name__ == "__main__":
    main()
