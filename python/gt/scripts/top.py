"""`python -m gt.scripts.top`: show what a dispatcher is at, live."""

import argparse
import sys

from gt import _gt
from gt._processes import stop_at_signals
from gt.scripts._target import add_options, read_options


def main(argv: list[str] | None = None) -> int:
    """Show until the user leaves; give the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt top",
        description="Show what a dispatcher, its workers and its sessions are at, live. Without "
        "--host, --port and --pid those on this machine are watched; Tab goes to the next.",
    )
    parser.add_argument(
        "--ema-alpha",
        type=float,
        default=0.15,
        help="how much of the newest measurement counts, up to 1 (default 0.15)",
    )
    parser.add_argument("--once", action="store_true", help="show one moment as text and end")
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
