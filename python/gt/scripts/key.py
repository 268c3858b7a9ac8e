"""`gt key`: make a key for a cluster, a role or a user."""

import argparse
import os
import stat
import sys
from pathlib import Path
from typing import Any

from gt import _gt


def main(argv: list[str] | None = None) -> int:
    """Print a new key; return the exit status."""
    parser = argparse.ArgumentParser(prog="gt key", description="Make a key.")
    parser.add_argument(
        "--role", choices=("client", "worker", "watcher", "operator"), help="limit it"
    )
    parser.add_argument("--user", help="make it a client's key that identifies this user")
    parser.add_argument("--team", default="", help="the user's team")
    parser.add_argument("--of-file", help="file with the cluster key to derive from; - for stdin")
    parser.add_argument("--of", help="the cluster key itself, which other users may see in `ps`")
    args = parser.parse_args(argv)
    if args.role and not (args.of or args.of_file):
        parser.error("--role needs --of-file FILE: a role's key belongs to a cluster key")
    if args.user is not None and not (args.of or args.of_file):
        parser.error("--user needs --of-file FILE: a user's key belongs to a cluster key")
    if args.user is not None and args.role not in (None, "client"):
        parser.error(f"--user makes a client's key, which does not fit --role {args.role}")
    if args.team and args.user is None:
        parser.error("--team needs --user: a team belongs to a user's key")
    try:
        cluster = args.of
        if args.of_file:
            cluster = sys.stdin.read() if args.of_file == "-" else Path(args.of_file).read_text()
        key = _gt.make_key(args.role, cluster, args.user, args.team)
        _make_private(sys.stdout)
        print(key)
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt key: {error}", file=sys.stderr)
        return 1
    return 0


def _make_private(out: Any) -> None:
    """If the key is redirected to a file, as in `gt key > cluster.key`, make the file private."""
    try:
        written = out.fileno()
        if stat.S_ISREG(os.fstat(written).st_mode):
            os.fchmod(written, 0o600)
    except (OSError, ValueError):
        # Not a file, or not this user's. Programs refuse a key file that others can read.
        pass


if __name__ == "__main__":
    sys.exit(main())
