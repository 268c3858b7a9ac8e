"""`gt explain-wait`: say what a session waits for, and because of whom."""

import argparse
import sys

from gt import _gt
from gt.scripts._target import add_options, read_options


def main(argv: list[str] | None = None) -> int:
    """Explain the wait of one session; give the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt explain-wait",
        description="Say in words what a session waits for, and because of whom.",
    )
    parser.add_argument("session", help="its name in `gt top`, as ada#1; or a user: all of theirs")
    add_options(parser)
    args = parser.parse_args(argv)
    target = read_options(parser, args)
    try:
        print(_gt.explain_wait(args.session, **target), end="")
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt explain-wait: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
