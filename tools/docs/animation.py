"""Draw the animated trace of the documentation's first page: `make pictures`.

Three programs of three users join a server with two workers, one after the other. What the workers
do is recorded, and drawn as a picture that is uncovered from left to right.
"""

from __future__ import annotations

import html
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

#: The seconds that are recorded, and those that the animation takes.
RECORDED = 1.6
SHOWN = 12.0

#: What each user's program does, for display, and its colour.
USERS = {
    "ada": ("trains on both workers", "#3d7dca"),
    "ben": ("asks, looks, asks again", "#d08a1d"),
    "eve": ("multiplies large matrices", "#3f9b58"),
}

#: When the second and the third program begin, in seconds after the recording has begun.
BEGIN = (0.4, 0.8)

#: A program of a third user, who multiplies large matrices all the time.
MULTIPLYING = """
import gt

gt.connect("localhost:{port}")
x = gt.randn(1024, 1024)
while True:
    x = (x @ x).softmax(-1)
    x.sum().item()
"""

#: The least pause between two pieces of work of a session that is drawn, in seconds.
PAUSE = 0.002

LEFT, TOP, WIDTH, ROW, GAP = 70, 40, 820, 46, 12


@dataclass
class Block:
    """A time in which a worker works for a session; times are in seconds."""

    worker: str
    user: str
    begin: float
    end: float


def read_blocks(trace: Path) -> list[Block]:
    """Return what workers did for whom, from a trace that `gt visualize` has written as JSON."""
    events = json.loads(trace.read_text())["traceEvents"]
    labels = [event for event in events if event["ph"] == "M" and "name" in event["args"]]
    workers = {event["pid"] for event in labels if event["args"]["name"] == "workers"}
    names = {
        event["tid"]: event["args"]["name"]
        for event in labels
        if event["pid"] in workers and event["name"] == "thread_name"
    }
    spans = [event for event in events if event["ph"] == "X" and event["tid"] in names]
    spans = [span for span in spans if span["args"].get("session")]
    spans.sort(key=lambda span: span["ts"])
    start = spans[0]["ts"]
    blocks: list[Block] = []
    last: dict[str, Block] = {}
    for span in spans:
        worker, session = names[span["tid"]], span["args"]["session"]
        user = session.split()[1].partition("@")[0]
        begin = (span["ts"] - start) / 1e6
        end = begin + span["dur"] / 1e6
        before = last.get(worker)
        if before and before.user == user and begin - before.end < PAUSE:
            before.end = max(before.end, end)
            continue
        last[worker] = Block(worker, user, begin, end)
        blocks.append(last[worker])
    return [block for block in blocks if block.begin < RECORDED]


def text(x: float, y: float, words: str, more: str = "") -> str:
    """Return a text of the picture."""
    return f'<text x="{x:.0f}" y="{y:.0f}" {more}>{html.escape(words)}</text>'


def draw(blocks: list[Block]) -> str:
    """Return the picture."""
    workers = sorted({block.worker for block in blocks})
    height = TOP + len(workers) * (ROW + GAP) + 40
    scale = WIDTH / RECORDED
    parts = []
    for number, worker in enumerate(workers):
        y = TOP + number * (ROW + GAP)
        parts.append(text(LEFT - 10, y + ROW / 2 + 5, worker, 'text-anchor="end"'))
        parts.append(f'<rect class="track" x="{LEFT}" y="{y}" width="{WIDTH}" height="{ROW}"/>')
    moving = []
    for block in blocks:
        x = LEFT + block.begin * scale
        width = max(0.6, (min(block.end, RECORDED) - block.begin) * scale)
        y = TOP + workers.index(block.worker) * (ROW + GAP)
        colour = USERS[block.user][1]
        moving.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW}" fill="{colour}"/>'
        )
    for user, (what, colour) in USERS.items():
        first = min((block.begin for block in blocks if block.user == user), default=RECORDED)
        x = LEFT + first * scale
        moving.append(f'<path d="M{x:.1f} {TOP - 22}V{TOP}" stroke="{colour}" stroke-width="2"/>')
        moving.append(text(x + 5, TOP - 12, f"{user} {what}", f'fill="{colour}"'))
    ticks = []
    for tenth in range(0, int(RECORDED * 10) + 1, 4):
        x, y = LEFT + tenth / 10 * scale, height - 22
        ticks.append(text(x, y, f"{tenth / 10:.1f} s", 'text-anchor="middle" class="small"'))
    shown = 100 * SHOWN / (SHOWN + 3)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + 30} {height}" role="img">
<title>Three users share two workers</title>
<style>
text {{ font: 13px sans-serif; }}
text:not([fill]) {{ fill: #777; }}
.small {{ font-size: 11px; }}
.track {{ fill: #8882; }}
.cover {{ transform-box: fill-box; animation: uncover {SHOWN + 3:.0f}s linear infinite; }}
.now {{ stroke: #999; animation: move {SHOWN + 3:.0f}s linear infinite; }}
@keyframes uncover {{ from {{ transform: scaleX(0); }} {shown:.0f}%, to {{ transform: none; }} }}
@keyframes move {{ from {{ transform: none; }}
  {shown:.0f}%, to {{ transform: translateX({WIDTH}px); }} }}
@media (prefers-reduced-motion: reduce) {{ .cover, .now {{ animation: none; }} }}
</style>
<clipPath id="past"><rect class="cover" x="{LEFT}" y="0" width="{WIDTH}" height="{height}"/>
</clipPath>
{"".join(parts)}
<g clip-path="url(#past)">{"".join(moving)}</g>
<path class="now" d="M{LEFT} {TOP - 6}V{height - 40}"/>
{"".join(ticks)}
</svg>
"""


def at(moment: float, program: str) -> str:
    """Return a program that has imported GT and waits for a moment before it connects."""
    wait = f"import time\ntime.sleep(max(0, {moment} - time.time()))\n"
    return program.replace("gt.connect(", wait + "gt.connect(", 1)


def draw_sharing(log: Path, picture: Path) -> None:
    """Draw a log of the three programs."""
    trace = log.with_suffix(".json")
    command = [sys.executable, "-m", "gt", "visualize", str(log), "-o", str(trace)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    picture.write_text(draw(read_blocks(trace)))
