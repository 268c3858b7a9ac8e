"""Draw the share, the entitlement and the use of device time of each client of each mix, over 10 s.

The mixes are those of benches/fairness.py, on a server with workers of one thread. The numbers are
those that the server reports in `gt top --json`. Prints a table, and draws a picture if asked to:

    .venv/bin/python benches/shares.py --draw shares.svg
"""

import argparse
import json
import sys
import time
from contextlib import ExitStack
from html import escape
from pathlib import Path
from typing import NamedTuple

from fairness import MIXES, SHARDED, clients, weighted

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from processes import cluster, run_gt

#: The window that is drawn, and its seconds.
WINDOW, SECONDS = "10s", 10
ONE_THREAD = ("--threads", "1")


class Row(NamedTuple):
    """What one client was due and got, in seconds of device time."""

    client: str
    #: By the weights of all clients, busy or not.
    share: float
    entitled: float
    used: float


def measure(address: str, workers: int, wanted: list[tuple], *options: str) -> list[Row]:
    """Run clients together until the window has nothing else in it; return its rows."""
    with clients(address, *wanted) as runners:
        for runner in runners:
            runner.begin(SECONDS + 3)
        time.sleep(SECONDS + 1)
        host, port = address.split(":")
        report = run_gt("top", "--once", "--json", "--host", host, "--port", port, *options)
        for runner in runners:
            runner.end()
    status = json.loads(report.stdout)
    # The window ends with the part of a second that has passed.
    covered = SECONDS - 1 + status["seconds"] % 1
    sessions = sorted(status["sessions"], key=lambda session: session["number"])
    rows = []
    for (_, work, *_), session in zip(wanted, sessions, strict=True):
        window = session["windows"][WINDOW]
        due = session["share"] * covered * workers
        row = Row(session["user"] or work, due, window["entitled_seconds"], window["used_seconds"])
        rows.append(row)
    return rows


def mixes(chosen: str):
    """Yield the name, the number of workers and the rows of each mix whose name has a text."""
    with ExitStack() as stack:
        for workers, all_mixes in ((1, MIXES), (2, SHARDED)):
            given = {name: wanted for name, wanted in all_mixes.items() if chosen in name}
            if given:
                running = cluster(workers, worker_options=ONE_THREAD)
                address, _ = stack.enter_context(running)
                for name, wanted in given.items():
                    yield name, workers, measure(address, workers, wanted)
                stack.close()
        name = "weights 10 : 90"
        if chosen in name:
            address, key, of_user = stack.enter_context(weighted(ONE_THREAD))
            wanted = [("flood", "p256", 1, of_user(user), "0.02") for user in ("ada", "eve")]
            yield name, 1, measure(address, 1, wanted, "--key-file", key)


#: The bars of a client: the field, and the colour.
BARS = {"share": "#b8b8b8", "entitled": "#7aa6d8", "used": "#1f5a99"}
LEFT, WIDTH, BAR, GAP = 210, 420, 7, 8


def picture(all_rows: dict[str, tuple[int, list[Row]]]) -> str:
    """Return an SVG with three bars for each client: what is due by weights, entitled and used."""
    parts, y = [], 30
    for place, (field, colour) in enumerate(BARS.items()):
        x = LEFT + 90 * place
        parts.append(f'<rect x="{x}" y="8" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{x + 15}" y="17">{field}</text>')
    for name, (workers, rows) in all_rows.items():
        y += 16
        parts.append(f'<text x="8" y="{y}" font-weight="bold">{escape(name)}</text>')
        y += GAP
        most = SECONDS * workers
        for row in rows:
            parts.append(f'<text x="24" y="{y + 2 * BAR}">{escape(row.client)}</text>')
            for field, colour in BARS.items():
                seconds = getattr(row, field)
                width = WIDTH * seconds / most
                box = f'x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 1}"'
                title = f"{field} {seconds:.1f} s of {most} s"
                parts.append(f'<rect {box} fill="{colour}"><title>{title}</title></rect>')
                y += BAR
            text = f"{row.used:.1f} of {row.entitled:.1f} s"
            parts.append(f'<text x="{LEFT + WIDTH + 10}" y="{y - BAR // 2}">{text}</text>')
            y += GAP
    size = f'width="{LEFT + WIDTH + 110}" height="{y + 10}"'
    style = 'font-family="sans-serif" font-size="12" fill="#202020"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join([head, ground, *parts, "</svg>"]) + "\n"


def main() -> None:
    """Measure, print a table, and draw the picture if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draw", type=Path, help="the SVG file to write")
    parser.add_argument("--only", default="", help="only mixes with this text in their names")
    given = parser.parse_args()
    print("| mix | client | share, s | entitled, s | used, s |")
    print("| --- | --- | --- | --- | --- |")
    drawn = {}
    for name, workers, rows in mixes(given.only):
        drawn[name] = (workers, rows)
        for row in rows:
            numbers = f"{row.share:.1f} | {row.entitled:.1f} | {row.used:.1f}"
            print(f"| {name} | {row.client} | {numbers} |", flush=True)
    if not drawn:
        sys.exit(f"no mix has {given.only!r} in its name")
    if given.draw:
        given.draw.write_text(picture(drawn))


if __name__ == "__main__":
    main()
