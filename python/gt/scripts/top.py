"""`gt top`: show the state of a dispatcher, live."""

import argparse
import sys

from gt import _gt
from gt._processes import stop_at_signals
from gt.scripts._target import add_options, read_options


def main(argv: list[str] | None = None) -> int:
    """Show the state until the user quits; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt top",
        description="Show the state of a dispatcher, its workers and its sessions, live. Without "
        "--host, --port and --pid the dispatchers on this machine are watched; Tab switches "
        "between them.",
    )
    parser.add_argument(
        "--ema-alpha",
        type=float,
        default=0.15,
        help="weight of the newest measurement in moving averages, up to 1 (default 0.15)",
    )
    parser.add_argument("--once", action="store_true", help="print the state once as text and exit")
    parser.add_argument("--json", action="store_true", help="the same as JSON, for scripts")
    add_options(parser)
    args = parser.parse_args(argv)
    target = read_options(parser, args)
    stop_at_signals()
    try:
        print(_gt.top(args.ema_alpha, args.once, args.json, **target), end="")
    except KeyboardInterrupt:
        return 130
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt top: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
