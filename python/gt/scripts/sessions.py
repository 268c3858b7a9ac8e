"""`gt sessions`: list one's sessions, and end them."""

import argparse
import sys

from gt import _gt
from gt.scripts._target import add_options, read_options


def main(argv: list[str] | None = None) -> int:
    """List the sessions, or end one; return the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["end"]:
        return _end(arguments[1:])
    parser = argparse.ArgumentParser(
        prog="gt sessions",
        description="List your sessions: name, age, program, tensors, bytes, device time, and what "
        "each waits for. `gt sessions end NAME` ends one. Yours are those of your key's user; "
        "without a user's key, everybody is one user.",
    )
    add_options(parser)
    target = read_options(parser, parser.parse_args(arguments))
    try:
        print(_gt.list_sessions(**target), end="")
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt sessions: {error}", file=sys.stderr)
        return 1
    return 0


def _end(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="gt sessions end",
        description="End one of your named sessions, also while a program has it: its tensors are "
        "freed. Without HOST:PORT or --port, the server is the one on this machine.",
    )
    parser.add_argument("name", help="the session's name")
    parser.add_argument("--token", help="the token of a private session")
    add_options(parser)
    args = parser.parse_intermixed_args(arguments)
    target = read_options(parser, args)
    try:
        address = target["address"] or _gt.only_server(target["process"])
        _gt.end_session(args.name, args.token, address, target["key_file"], target["insecure"])
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt sessions end: {error}", file=sys.stderr)
        return 1
    print(f"ended the session '{args.name}'")
    return 0


if __name__ == "__main__":
    sys.exit(main())
