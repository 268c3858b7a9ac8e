"""`gt published`: list what is published on a server."""

import argparse
import sys

from gt import _gt
from gt.scripts._target import add_options, read_options


def main(argv: list[str] | None = None) -> int:
    """List the publications; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt published",
        description="List what is published on a server: name, version, age, who may read it, "
        "tensors, bytes, and the number of sessions that read it.",
    )
    add_options(parser)
    target = read_options(parser, parser.parse_args(argv))
    try:
        print(_gt.list_publications(**target), end="")
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt published: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
