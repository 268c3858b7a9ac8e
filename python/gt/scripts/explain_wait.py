"""`gt explain-wait`: explain what a session waits for, and which sessions make it wait."""

import argparse
import sys

from gt import _gt
from gt.scripts._target import add_options, read_options


def main(argv: list[str] | None = None) -> int:
    """Explain the wait of a session, or of a user's sessions; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt explain-wait",
        description="Explain in words what a session waits for, and which sessions make it wait.",
    )
    parser.add_argument(
        "session",
        help="the session's name in `gt top`, as 'train.py ada@box #3', or its number; or a "
        "program, a user or a host, for all of its sessions",
    )
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
