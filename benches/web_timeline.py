"""Measure the timeline of the web page with a million spans: frames while one pans and zooms.

Writes the part "Timeline in a browser" of docs/benchmarks.md. It needs chromium and Playwright, as
the tests of `make test-browser`. The spans are made here; the files are those of the page.
"""

import argparse
import functools
import http.server
import json
import re
import shutil
import statistics
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

HEADING = "## Timeline in a browser\n"
CLIENTS, WORKERS = 4, 8
FRAMES = 240
FILES = Path(__file__).parents[1] / "crates" / "gt-web" / "page"
SIZES = (100_000, 1_000_000)

#: Pans or zooms at each frame; returns the milliseconds between frames, and those of drawing.
DRIVE = """async ([name, count]) => {
  const plain = window.requestAnimationFrame;
  const drawn = [];
  // The page asks for a frame once it has something to draw.
  window.requestAnimationFrame = (draw) => plain((now) => {
    const begin = performance.now();
    draw(now);
    drawn.push(performance.now() - begin);
  });
  const canvas = document.querySelector('.lanes canvas');
  const press = (key) => new KeyboardEvent('keydown', { key, bubbles: true });
  const key = (of) => canvas.dispatchEvent(press(of));
  const wheel = (deltaY) => {
    const box = canvas.getBoundingClientRect();
    canvas.dispatchEvent(new WheelEvent('wheel', {
      deltaY, clientX: box.x + box.width / 2, clientY: box.y + 40, cancelable: true, bubbles: true,
    }));
  };
  const pan = (at, first) => {
    if (at === 0) wheel(first);
    key(at % 40 < 20 ? 'd' : 'a');
  };
  const steps = {
    'pan, all in sight': (at) => { wheel(at % 2 ? 1 : -2); },
    'pan, a tenth in sight': (at) => pan(at, -1150),
    'pan, a thousandth in sight': (at) => pan(at, -3450),
    'zoom in and out': (at) => { wheel(at % 120 < 60 ? -60 : 60); },
  };
  key('0');
  const times = [];
  drawn.length = 0;
  const frame = () => new Promise((then) => plain(then));
  await frame();
  let last = await frame();
  for (let at = 0; at < count; at += 1) {
    steps[name](at);
    const now = await frame();
    times.push(now - last);
    last = now;
  }
  window.requestAnimationFrame = plain;
  return [times, drawn];
}"""
STEPS = (
    "pan, all in sight",
    "pan, a tenth in sight",
    "pan, a thousandth in sight",
    "zoom in and out",
)


def recording(spans: int) -> bytes:
    """Return a recording as the page reads it, with about this number of spans."""
    random = np.random.default_rng(7)
    kinds = [
        {
            "name": name,
            "colour": colour,
            "session": session,
            "session_name": f"train{session}.py ada@box #{session}",
            "steps": "matmul,relu,add" if name == "hot path" else None,
            "lines": "train.py:30",
            "failed": False,
        }
        for session in range(CLIENTS)
        for name, colour in [("add", 1), ("matmul", 3), ("sum", 2), ("move", 7), ("hot path", 6)]
    ]
    rows: list[dict[str, Any]] = []
    columns: list[tuple[Any, Any, Any]] = []
    for part, name in [
        *(("client", f"train{number}.py ada@box #{number}") for number in range(CLIENTS)),
        ("dispatcher", "dispatcher"),
        *(("worker", f"w{number}") for number in range(WORKERS)),
    ]:
        count = spans // WORKERS if part == "worker" else spans // 200
        rows.append({"part": part, "name": name, "start": sum(len(each[0]) for each in columns)})
        # Five seconds in all: busy times with many short spans, and few long ones.
        lengths = random.lognormal(0, 1.2, count)
        gaps = random.lognormal(-1, 1.5, count) * np.where(random.random(count) < 0.01, 60, 1)
        ends = np.cumsum(lengths + gaps)
        scale = 5 / ends[-1]
        number = random.integers(0, len(kinds), count)
        columns.append((100 + (ends - lengths) * scale, 100 + ends * scale, number))
    begin, end, kind = (np.concatenate(each) for each in zip(*columns, strict=True))
    count = len(begin)
    moves = count // 50
    sent = np.sort(random.uniform(100, 105, moves))
    colours = [
        ("create", "949494"), ("elementwise", "009e73"), ("reduce", "56b4e9"), ("matmul", "0072b2"),
        ("shape", "b3a369"), ("index", "8c6bb1"), ("hot path", "ecd43c"), ("move", "d55e00"),
        ("compile", "cc79a7"), ("read", "66a61e"), ("issue", "5e81ac"), ("plan", "4c566a"),
        ("queue", "d8d8d8"), ("message", "bfbfbf"),
    ]  # fmt: skip
    header = {
        "title": "synthetic",
        "dropped": 0,
        "ended": None,
        "session": None,
        "begin": 100.0,
        "end": 105.0,
        "spans": count,
        "moves": moves,
        "rows": rows,
        "kinds": kinds,
        "colours": [{"name": name, "rgb": list(bytes.fromhex(rgb))} for name, rgb in colours],
    }
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 4) % 8)
    worker = random.integers(CLIENTS + 1, CLIENTS + 1 + WORKERS, (2, moves))
    parts = [
        *(begin, end, np.full(count, 4096.0), np.arange(count, dtype=float)),
        *(kind.astype("<u4"), np.ones(count, "<u4")),
        *(sent, sent + 2e-5, np.full(moves, 4096.0)),
        *worker.astype("<u4"),
    ]
    return struct.pack("<I", len(text)) + text + b"".join(part.tobytes() for part in parts)


class Page(http.server.SimpleHTTPRequestHandler):
    """Serves the files of the page, and a recording."""

    content = b""

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        """Answer with the recording, a list of it, or a file; there are no updates."""
        listed = {"number": 1, "state": "ready", "seconds": 5, "session": None, "age": 1.0}
        listed |= {"events": 0, "bytes": len(self.content), "dropped": 0, "ended": None}
        answers = {
            "/events": ("text/event-stream", b"retry: 600000\n\n"),
            "/actions": ("application/json", b'{"actions": []}'),
            "/recordings": ("application/json", json.dumps({"recordings": [listed]}).encode()),
            "/recordings/1": ("application/octet-stream", self.content),
        }
        if self.path not in answers:
            super().do_GET()
            return
        kind, body = answers[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def page_with(spans: int) -> Iterator[str]:
    """Yield the address of the page, which has a recording of that number of spans."""
    serving = type("Serving", (Page,), {"content": recording(spans)})
    handler = functools.partial(serving, directory=str(FILES))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@contextmanager
def tab_with(link: str, shots: Path | None) -> Iterator[tuple[Any, float]]:
    """Yield a tab that shows the recording, and the seconds until it has."""
    from playwright.sync_api import sync_playwright

    path, arguments = shutil.which("chromium"), ["--no-sandbox"]
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=arguments)
        tab = chromium.new_context(viewport={"width": 1600, "height": 1000}).new_page()
        begin = time.perf_counter()
        tab.goto(f"{link}#/timeline/1")
        tab.wait_for_selector(".legend li")
        took = time.perf_counter() - begin
        if shots:
            tab.screenshot(path=shots / "timeline.png", full_page=True)
        yield tab, took
        chromium.close()


def measure(spans: int, shots: Path | None) -> tuple[float, dict[str, list[list[float]]]]:
    """Return the seconds until a recording is shown, and by what one does the times of frames and
    those of drawing."""
    with page_with(spans) as link, tab_with(link, shots) as (tab, took):
        return took, {name: tab.evaluate(DRIVE, [name, FRAMES]) for name in STEPS}


def table(sizes: tuple[int, ...], shots: Path | None) -> str:
    """Return the section's table."""
    titles = ["spans", "shown after", "while", "median frame", "95 % of frames within"]
    titles += ["longest", "drawing"]
    lines = [f"| {' | '.join(titles)} |", f"| {' | '.join('---' for _ in titles)} |"]
    for spans in sizes:
        took, by_step = measure(spans, shots)
        for name, (times, drawn) in by_step.items():
            late = sorted(times)[int(0.95 * len(times))]
            lines.append(
                f"| {spans:,} | {took:.1f} s | {name} | {statistics.median(times):.1f} ms "
                f"| {late:.1f} ms | {max(times):.1f} ms | {statistics.median(drawn):.1f} ms |"
            )
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def write(text: str, path: Path) -> None:
    """Write the table into its section of a document."""
    before, heading, after = path.read_text().partition(HEADING)
    assert heading, f"{path} has no section {HEADING}"
    section = re.search(r"\| spans \|.*?\n(?!\|)", after, re.DOTALL)
    assert section, "the section has no table"
    path.write_text(before + heading + after[: section.start()] + text + after[section.end() :])


def main() -> None:
    """Measure, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, nargs="*", default=SIZES)
    parser.add_argument("--shots", type=Path, help="a folder for screenshots")
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    text = table(tuple(given.spans), given.shots)
    if given.write:
        write(text, given.write)


if __name__ == "__main__":
    main()
