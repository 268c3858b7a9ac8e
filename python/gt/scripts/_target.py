"""The command-line options that select the dispatcher to watch."""

import argparse
from collections.abc import Callable
from typing import Any

from gt._processes import join_address
from gt.session.shown_address import without_secret

#: The largest weight of a user or a session, as for the server.
MOST_WEIGHT = 1_000_000


def between(least: int, most: int) -> Callable[[str], int]:
    """Return an argparse type for integers from `least` to `most`."""

    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"got {value}, expected {least} to {most}")
        return value

    number.__name__ = "number"
    return number


def add_options(parser: argparse.ArgumentParser, is_named: bool = True) -> None:
    """Add the options that :func:`read_options` reads.

    Args:
        parser: the parser of a command.
        is_named: whether the server is an argument; otherwise it is the option `--server`.
    """
    text = "the server, instead of --host and --port"
    if is_named:
        parser.add_argument("server", nargs="?", metavar="HOST:PORT", help=text)
    else:
        parser.add_argument("--server", metavar="HOST:PORT", help=text)
    parser.add_argument("--host", help="the server's host (default localhost, if --port is given)")
    parser.add_argument("-p", "--port", type=int, help="the server's port (default 9000)")
    parser.add_argument("--pid", type=between(1, 1 << 22), help="process ID of a program or server")
    parser.add_argument("--key-file", help="file with the key of the cluster or the role")
    parser.add_argument(
        "--insecure", action="store_true", help="the server uses neither keys nor encryption"
    )


def read_options(parser: argparse.ArgumentParser, args: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `_gt`'s tools: address, process, key_file, insecure."""
    address = args.server
    if address is not None and (args.host or args.port is not None or args.pid is not None):
        parser.error(
            f"{without_secret(address)} is a server, and --host, --port or --pid names another"
        )
    if args.host or args.port is not None:
        port = 9000 if args.port is None else args.port
        if not 1 <= port <= 65535:
            parser.error(f"the port is {port}, expected 1 to 65535")
        address = join_address(args.host or "localhost", port)
        if args.pid is not None:
            parser.error("--pid names a program on this machine, --host and --port a server")
    if address is not None and "://" in address:
        from gt.session.tunnel import is_tunnel, open_tunnel

        try:
            address = open_tunnel(address) if is_tunnel(address) else address
        except ConnectionError as error:
            parser.exit(1, f"{parser.prog}: {error}\n")
    return {
        "address": address,
        "process": args.pid,
        "key_file": args.key_file,
        "insecure": args.insecure,
    }
