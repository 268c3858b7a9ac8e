"""`gt sessions`: list one's sessions, end, pause, resume and weigh them."""

import argparse
import sys

from gt import _gt
from gt.scripts._target import MOST_WEIGHT, add_options, between, read_options


def main(argv: list[str] | None = None) -> int:
    """List the sessions, or end, pause, resume or weigh some; return the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments[:1] == ["end"]:
        return _end(arguments[1:])
    if arguments[:1] in (["pause"], ["resume"]):
        return _pause(arguments[0], arguments[1:])
    if arguments[:1] == ["weigh"]:
        return _weigh(arguments[1:])
    parser = argparse.ArgumentParser(
        prog="gt sessions",
        description="List your sessions: name, age, program, tensors, bytes, device time, and "
        "what each waits for. `gt sessions end NAME` ends one. Operators pause one by `gt sessions "
        "pause NAME`, or all of a user by `--user USER`, and resume them; `gt sessions weigh NAME "
        "WEIGHT` changes its share among those of its user. Yours are those of your "
        "key's user; without a user's key, everybody is one user.",
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
    parser.add_argument(
        "--user",
        help="end a session of this user, as an operator or as the user: also one without a name, "
        "by its label or number",
    )
    add_options(parser)
    args = parser.parse_intermixed_args(arguments)
    target = read_options(parser, args)
    try:
        address = target["address"] or _gt.only_server(target["process"])
        if args.user is not None:
            print(_gt.end_any_session(args.name, args.user, **target))
            return 0
        _gt.end_session(args.name, args.token, address, target["key_file"], target["insecure"])
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt sessions end: {error}", file=sys.stderr)
        return 1
    print(f"ended the session '{args.name}'")
    return 0


def _pause(command: str, arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=f"gt sessions {command}",
        description="Pause sessions, whose programs then wait, or resume them. With keys, this "
        "takes an operator's key, or that of the sessions' user.",
    )
    parser.add_argument("name", nargs="?", help="the session's name, label or number")
    parser.add_argument("--user", help="the session's user; without a name, all of the user's")
    add_options(parser, is_named=False)
    args = parser.parse_args(arguments)
    target = read_options(parser, args)
    if args.name is None and args.user is None:
        parser.error("neither a session's name nor --user USER is given")
    try:
        print(_gt.pause_sessions(command == "pause", args.name, args.user, **target))
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt sessions {command}: {error}", file=sys.stderr)
        return 1
    return 0


def _weigh(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="gt sessions weigh",
        description="Set the weight of a session among those of its user, which is usually 1. "
        "With keys, this takes an operator's key, or that of the session's user.",
    )
    parser.add_argument("name", help="the session's name, label or number")
    parser.add_argument("weight", type=between(1, MOST_WEIGHT), help="a whole number from 1 on")
    parser.add_argument("--user", help="the session's user, if several have such a session")
    add_options(parser, is_named=False)
    args = parser.parse_args(arguments)
    target = read_options(parser, args)
    try:
        print(_gt.weigh_session(args.name, args.weight, args.user, **target))
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt sessions weigh: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
