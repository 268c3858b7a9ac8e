"""`gt trace`: record the events of a dispatcher into a log."""

import argparse
import sys
from datetime import datetime
from pathlib import Path

from gt import _gt
from gt._processes import stop_at_signals
from gt.scripts._target import add_options, between, read_options


def main(argv: list[str] | None = None) -> int:
    """Record a log; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt trace",
        description="Record the events of a dispatcher into a log, which `gt visualize` draws. "
        "Without --host, --port and --pid the only dispatcher on this machine is watched.",
    )
    parser.add_argument(
        "-s", "--seconds", type=float, default=5.0, help="how long to record (default 5)"
    )
    parser.add_argument(
        "-n", "--max-events", type=between(1, 1 << 32), metavar="N", help="stop after N events"
    )
    parser.add_argument("--dir", default=".", help="folder for the log (default: this one)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the log's name (default trace_DATE_TIME.log)"
    )
    add_options(parser)
    args = parser.parse_args(argv)
    target = read_options(parser, args)
    name = args.output or f"trace_{datetime.now():%Y%m%d_%H%M%S}.log"
    path = Path(args.dir) / name
    stop_at_signals()
    try:
        traced = _gt.trace(path, args.seconds, args.max_events, **target)
    except KeyboardInterrupt:
        return 130
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt trace: {error}", file=sys.stderr)
        return 1
    events, dropped, title, ended = traced
    print(f"gt trace: {events:,} events of {title} -> {path}")
    if dropped:
        print(
            f"gt trace: {dropped:,} more events were dropped, as they arrived too fast",
            file=sys.stderr,
        )
    if ended:
        print(f"gt trace: ended early: {ended}", file=sys.stderr)
    if not events:
        print("gt trace: no events; trace while a program is running", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
