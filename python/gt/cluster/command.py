"""`gt cluster`: start a cluster that outlives the command, show it, and end it."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from typing import Any

from gt._processes import at_least
from gt.cluster import kinds, options, requests
from gt.cluster.base import Cluster
from gt.cluster.down import down
from gt.cluster.errors import ClusterError
from gt.cluster.folder import ClusterFolder
from gt.cluster.started import StartedCluster, all_names, checked_name, read_record
from gt.cluster.status import ClusterStatus, read_status
from gt.cluster.up import script, up


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand; return the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        return int(args.run(args) or 0)
    except (ClusterError, ConnectionError, OSError, TypeError, ValueError) as error:
        print(f"gt cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gt cluster: stopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gt cluster", description="Start a server with workers, show it, and end it."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="start a cluster: `gt cluster up local --workers 4`")
    systems = up.add_subparsers(required=True, metavar="KIND", dest="kind")
    for name in kinds.names():
        kind = kinds.find(name)
        text = (kind.__doc__ or "").strip().splitlines()[0]
        one = systems.add_parser(name, help=text, description=text)
        one.add_argument("--name", help="the cluster's name (default: the kind's)")
        one.add_argument(
            "--timeout",
            type=_seconds,
            default=300.0,
            metavar="SECONDS",
            help="how long it may take to be complete (default 300)",
        )
        one.add_argument(
            "--adapt",
            type=_bounds,
            metavar="MINIMUM:MAXIMUM",
            help="have as many workers as there is work for, within these bounds",
        )
        one.add_argument(
            "--idle",
            type=_seconds,
            default=60.0,
            metavar="SECONDS",
            help="with --adapt: the time without work after which workers are drained (default 60)",
        )
        one.add_argument(
            "--script", action="store_true", help="only show what would be run or submitted"
        )
        options.add_options(one, kind)
        one.set_defaults(run=_up)
    for name, run, text in (
        ("down", _down, "end a cluster: its workers hand over nothing"),
        ("status", _status, "show a cluster, or all"),
        ("logs", _logs, "show what a cluster's processes have printed"),
        ("scale", _scale, "set the number of workers, nodes, pods or hosts"),
    ):
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument("name", nargs="?", help="the cluster's name, if there are several")
        if name == "logs":
            one.add_argument(
                "--lines",
                type=at_least(1),
                default=20,
                metavar="N",
                help="the last N lines of each",
            )
        if name == "scale":
            one.add_argument("size", type=at_least(0), help="how many")
        one.set_defaults(run=run)
    return parser


def _bounds(text: str) -> tuple[int, int]:
    minimum, _, maximum = text.partition(":")
    if not (minimum.isdigit() and maximum.isdigit()):
        raise argparse.ArgumentTypeError(f"got '{text}', expected MINIMUM:MAXIMUM, as 1:8")
    if int(minimum) > int(maximum) or int(maximum) == 0:
        raise argparse.ArgumentTypeError(
            f"got '{text}', expected MINIMUM <= MAXIMUM, and a MAXIMUM of 1 or more"
        )
    return int(minimum), int(maximum)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"got '{text}', expected more than 0 seconds")
    return value


def _up(args: argparse.Namespace) -> None:
    name = checked_name(args.name or args.kind)
    adapt = None if args.adapt is None else [*args.adapt, args.idle]
    arguments = options.given(args, kinds.find(args.kind))
    record = StartedCluster(name, args.kind, arguments, adapt=adapt)
    if args.script:
        print(script(record), end="")
    else:
        up(record, args.timeout)


def _chosen(args: argparse.Namespace) -> str:
    """Return the name of the cluster that is named, or of the only one."""
    if args.name is not None:
        return str(args.name)
    names = all_names()
    if len(names) == 1:
        return names[0]
    found = ", ".join(names)
    raise ClusterError(f"which cluster? there are {found}" if found else "there is no cluster")


def _down(args: argparse.Namespace) -> None:
    name = _chosen(args)
    down(name)
    print(f"gt cluster: '{name}' has ended")


def _status(args: argparse.Namespace) -> int:
    names = [args.name] if args.name is not None else all_names()
    if not names:
        print("gt cluster: there is no cluster")
    status = 0
    for name in names:
        try:
            print(_status_of(read_record(name)))
        except (RuntimeError, OSError, TypeError, ValueError) as error:
            # The others are shown.
            print(f"cluster '{name}': {error}", file=sys.stderr)
            status = 1
    return status


def _status_of(record: StartedCluster) -> ClusterStatus:
    if record.kind not in kinds.OWNED and not record.is_owned():
        with kinds.attached(record.kind, record.folder) as cluster:
            found: ClusterStatus = cluster.status()
            return found
    address = record.folder / "address"
    report: dict[str, Any] = {}
    published: str | None = None
    with suppress(ConnectionError, FileNotFoundError):
        published = address.read_text().strip()
        report = read_status(f"file://{address}", str(record.folder / "key"))
    kind: type[Cluster] = kinds.find(record.kind)
    workers, sessions = report.get("workers", []), report.get("sessions", [])
    return ClusterStatus(
        kind=record.kind,
        name=record.name,
        address=published,
        wanted=record.size if record.size is not None else len(workers),
        unit=kind.unit,
        workers=workers,
        sessions=sessions,
        notes=_notes_of(record),
    )


def _notes_of(record: StartedCluster) -> list[str]:
    if record.is_elsewhere():
        return [f"its owner is on {record.host}: `gt cluster` there says more"]
    if record.is_owned():
        return requests.read_notes(record.folder)
    return ["its owner has ended: `gt cluster down` removes it"]


def _logs(args: argparse.Namespace) -> None:
    record = read_record(_chosen(args))
    if record.kind in kinds.OWNED:
        found = ClusterFolder(record.folder).read_logs(args.lines)
    else:
        with kinds.attached(record.kind, record.folder) as cluster:
            found = cluster.logs(args.lines)
    for name, text in found.items():
        print(f"== {name}\n{text}", end="")


def _scale(args: argparse.Namespace) -> None:
    # `scale 4` names no cluster: argparse takes the last word as the size.
    record = read_record(_chosen(args))
    record.refuse_elsewhere()
    if record.is_owned():
        requests.ask(record.folder, args.size, record.is_owned)
    elif record.kind in kinds.OWNED:
        raise ClusterError(f"the owner of '{record.name}' has ended")
    else:
        with kinds.attached(record.kind, record.folder) as cluster:
            cluster.scale(args.size)
    print(f"gt cluster: '{record.name}' is to have {args.size}")


if __name__ == "__main__":
    sys.exit(main())
