"""`gt weight`: change a user's weight among others, as an operator."""

import argparse
import sys

from gt import _gt
from gt.scripts._target import MOST_WEIGHT, add_options, between, read_options


def main(argv: list[str] | None = None) -> int:
    """Set the weight of a user; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt weight",
        description="Set the weight of a user among others, in place of the policy's `share`, "
        "until the server ends. With keys, this takes an operator's key.",
    )
    parser.add_argument("user", help="the user")
    parser.add_argument(
        "weight", type=_weight, help="a whole number from 1 on, or `policy` for the policy's again"
    )
    add_options(parser, is_named=False)
    args = parser.parse_args(argv)
    target = read_options(parser, args)
    try:
        weight = None if args.weight == "policy" else args.weight
        print(_gt.weigh_user(args.user, weight, **target))
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt weight: {error}", file=sys.stderr)
        return 1
    return 0


def _weight(text: str) -> int | str:
    return text if text == "policy" else between(1, MOST_WEIGHT)(text)


_weight.__name__ = "weight"


if __name__ == "__main__":
    sys.exit(main())
