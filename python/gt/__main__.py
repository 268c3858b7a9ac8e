"""The command `gt`, which is `python -m gt`, too."""

import sys
from pathlib import Path

import gt
from gt import _gt

_USAGE = """usage: gt COMMAND [options]

commands:
  server        run a dispatcher that workers and clients connect to
  worker        run a worker that serves a dispatcher
  top           show what a dispatcher, its workers and its sessions are at, live
  explain-wait  say what a session waits for, and because of whom
  trace         record what happens at a dispatcher into a log
  visualize     draw such a log as a timeline
  convert       turn a folder of Hugging Face into a checkpoint of GT, or back
  key           make a key for servers, or one for a role or a user of such a key
  version       say the version

`gt COMMAND --help` tells more. `gt --version` prints version, commit, engines and features: a bug
report begins with it.
"""


def main(argv: list[str] | None = None) -> int:
    """Run a command; give the exit status."""
    command, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if command == "server":
        from gt.server.__main__ import main as server

        return server(rest)
    if command == "worker":
        from gt.worker.__main__ import main as worker

        return worker(rest)
    if command == "top":
        from gt.scripts.top import main as top

        return top(rest)
    if command == "explain-wait":
        from gt.scripts.explain_wait import main as explain_wait

        return explain_wait(rest)
    if command == "trace":
        from gt.scripts.trace import main as trace

        return trace(rest)
    if command == "visualize":
        from gt.scripts.visualize import main as visualize

        return visualize(rest)
    if command == "convert":
        from gt.convert.__main__ import main as convert

        return convert(rest)
    if command == "key":
        return _key(rest)
    if command == "version":
        print(gt.__version__)
        return 0
    if command in ("-V", "--version"):
        from gt._version import report

        print(report())
        return 0
    if command in ("-h", "--help", "help"):
        print(_USAGE, end="")
        return 0
    print(f"gt: there is no command '{command}'\n\n{_USAGE}", end="", file=sys.stderr)
    return 2


def _key(argv: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="gt key", description="Make a key.")
    parser.add_argument("--role", choices=("client", "worker", "watcher"), help="limit it")
    parser.add_argument("--user", help="make it a client's key that says who the user is")
    parser.add_argument("--team", default="", help="the user's team")
    parser.add_argument("--of-file", help="the file with the cluster key it is for; - for stdin")
    parser.add_argument("--of", help="the cluster key itself, which others may see in `ps`")
    args = parser.parse_args(argv)
    if args.role and not (args.of or args.of_file):
        parser.error("--role needs --of-file FILE: a role's key belongs to a cluster key")
    if args.user is not None and not (args.of or args.of_file):
        parser.error("--user needs --of-file FILE: a user's key belongs to a cluster key")
    if args.user is not None and args.role not in (None, "client"):
        parser.error(f"--user makes a client's key, --role {args.role} is another's")
    if args.team and args.user is None:
        parser.error("--team needs --user: a team is told of a user")
    try:
        cluster = args.of
        if args.of_file:
            cluster = sys.stdin.read() if args.of_file == "-" else Path(args.of_file).read_text()
        print(_gt.make_key(args.role, cluster, args.user, args.team))
    except (ConnectionError, OSError, ValueError) as error:
        print(f"gt key: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
