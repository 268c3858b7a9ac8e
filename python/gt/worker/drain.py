"""`gt worker drain`: move the sessions of a worker to others, and end it."""

import argparse
import sys

from gt import _gt
from gt.scripts._target import add_options, read_options


def main(argv: list[str]) -> int:
    """Drain a worker; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt worker drain",
        description="Move the slots and tensors of a worker to other workers, and end it: its "
        "sessions continue there and lose nothing. The last worker is drained into the folder of "
        "its --state. With keys, this takes an operator's key.",
    )
    parser.add_argument("worker", metavar="WORKER", help="its name or number, as in gt top")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how long it may take (default 60); after that the worker serves on",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="end the worker after that time in any case: what cannot move is lost",
    )
    add_options(parser, is_named=False)
    args = parser.parse_args(argv)
    target = read_options(parser, args)
    try:
        print(_gt.drain_worker(args.worker, args.timeout, args.force, **target))
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt worker drain: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gt worker drain: not waiting any more; the server goes on with it", file=sys.stderr)
        return 130
    return 0


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 86_400:
        raise argparse.ArgumentTypeError(f"got {text}, expected 0 to 86400 seconds")
    return value


_seconds.__name__ = "number of seconds"
