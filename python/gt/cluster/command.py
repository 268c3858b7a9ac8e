"""`gt cluster`: start a cluster that outlives the command, show it, and end it."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

from gt.cluster import kinds, options
from gt.cluster.base import Cluster
from gt.cluster.errors import ClusterError
from gt.cluster.started import (
    StartedCluster,
    all_records,
    checked_name,
    clusters_folder,
    read_record,
)
from gt.cluster.status import ClusterStatus, read_status

#: How long an owner may take to close its cluster, in seconds.
_CLOSE_WITHIN = 30.0


def main(argv: list[str] | None = None) -> int:
    """Run a subcommand; return the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        args.run(args)
    except (ClusterError, ConnectionError, OSError, TypeError, ValueError) as error:
        print(f"gt cluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("gt cluster: stopped", file=sys.stderr)
        return 130
    return 0


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
            type=float,
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
            type=float,
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
                "--lines", type=int, default=20, metavar="N", help="the last N lines of each"
            )
        if name == "scale":
            one.add_argument("size", type=int, help="how many")
        one.set_defaults(run=run)
    return parser


def _bounds(text: str) -> tuple[int, int]:
    minimum, _, maximum = text.partition(":")
    if not (minimum.isdigit() and maximum.isdigit()):
        raise argparse.ArgumentTypeError(f"got '{text}', expected MINIMUM:MAXIMUM, as 1:8")
    return int(minimum), int(maximum)


def _up(args: argparse.Namespace) -> None:
    kind = kinds.find(args.kind)
    arguments = options.given(args, kind)
    if args.script:
        print(kind(**arguments).script(), end="")
        return
    name = checked_name(args.name or args.kind)
    is_owned = args.kind in kinds.OWNED or args.adapt is not None
    adapt = None if args.adapt is None else [*args.adapt, args.idle]
    record = StartedCluster(name, args.kind, arguments, adapt=adapt)
    clusters_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        record.folder.mkdir(mode=0o700)
    except FileExistsError:
        raise ClusterError(
            f"the cluster '{name}' is there already\n  hint: choose another --name, or end it with "
            f"`gt cluster down {name}`"
        ) from None
    try:
        record.write()
        if is_owned:
            _start_owner(record, args.timeout)
        else:
            arguments = {**arguments, "name": name, "folder": record.folder, "keep": True}
            kind(**arguments).start(args.timeout)
        print(_summary(read_record(name)))
    except BaseException:
        with suppress(ClusterError, OSError):
            _end(read_record(name))
        record.remove()
        raise


def _start_owner(record: StartedCluster, timeout: float) -> None:
    """Start the process that owns a cluster, and wait until the cluster is complete."""
    (record.folder / "logs").mkdir(mode=0o700, exist_ok=True)
    with (record.folder / "logs" / "owner.log").open("ab") as log:
        owner = subprocess.Popen(
            [sys.executable, "-m", "gt.cluster.owner", record.name, f"{timeout:g}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    told = record.folder / "started"
    until = time.monotonic() + timeout + _CLOSE_WITHIN
    while not told.exists():
        if owner.poll() is not None and not told.exists():
            words = (record.folder / "logs" / "owner.log").read_text(errors="replace")
            raise ClusterError(f"the owner of the cluster '{record.name}' has ended\n{words}")
        if time.monotonic() > until:
            owner.kill()
            raise ClusterError(f"the owner of the cluster '{record.name}' does not answer")
        time.sleep(0.02)
    failure = told.read_text()
    if failure:
        raise ClusterError(failure)


def _summary(record: StartedCluster) -> str:
    address = (record.folder / "address").read_text().strip()
    return (
        f"gt cluster: '{record.name}' runs at {address}\n"
        f'  a program:  gt.connect("file://{record.folder}/address")\n'
        f"  a watcher:  gt top file://{record.folder}/address\n"
        f"  its end:    gt cluster down {record.name}"
    )


def _chosen(args: argparse.Namespace) -> StartedCluster:
    """Return the cluster that is named, or the only one."""
    if args.name is not None:
        return read_record(args.name)
    records = all_records()
    if len(records) == 1:
        return records[0]
    found = ", ".join(record.name for record in records)
    raise ClusterError(f"which cluster? there are {found}" if found else "there is no cluster")


def _down(args: argparse.Namespace) -> None:
    record = _chosen(args)
    _end(record)
    record.remove()
    print(f"gt cluster: '{record.name}' has ended")


def _end(record: StartedCluster) -> None:
    if record.process is None:
        if record.kind not in kinds.OWNED:
            _attach(record).close()
        return
    with suppress(ProcessLookupError):
        if record.is_owned():
            os.kill(record.process, signal.SIGTERM)
    until = time.monotonic() + _CLOSE_WITHIN
    while record.is_owned():
        if time.monotonic() > until:
            # What it has started ends with it.
            os.kill(record.process, signal.SIGKILL)
            raise ClusterError(
                f"the owner of '{record.name}' (process {record.process}) did not close it within "
                f"{_CLOSE_WITHIN:g} s, and was killed"
            )
        time.sleep(0.02)
    if record.kind not in kinds.OWNED:
        with suppress(ClusterError):
            _attach(record).close()


def _attach(record: StartedCluster) -> Any:
    """Return the cluster of a record, which this program did not start."""
    kind: Any = kinds.find(record.kind)
    return kind.attach(record.folder)


def _status(args: argparse.Namespace) -> None:
    records = [_chosen(args)] if args.name is not None else all_records()
    if not records:
        print("gt cluster: there is no cluster")
    for record in records:
        print(_status_of(record))


def _status_of(record: StartedCluster) -> ClusterStatus:
    if record.kind not in kinds.OWNED:
        found: ClusterStatus = _attach(record).status()
        return found
    address = record.folder / "address"
    report: dict[str, Any] = {}
    with suppress(ConnectionError):
        report = read_status(f"file://{address}") if address.exists() else {}
    kind: type[Cluster] = kinds.find(record.kind)
    workers, sessions = report.get("workers", []), report.get("sessions", [])
    return ClusterStatus(
        kind=record.kind,
        name=record.name,
        address=address.read_text().strip() if address.exists() else None,
        wanted=record.size if record.size is not None else len(workers),
        unit=kind.unit,
        workers=workers,
        sessions=sessions,
        notes=[] if record.is_owned() else ["its owner has ended: `gt cluster down` removes it"],
    )


def _logs(args: argparse.Namespace) -> None:
    record = _chosen(args)
    if record.kind in kinds.OWNED:
        from gt.cluster.folder import ClusterFolder

        found = ClusterFolder(record.folder).read_logs(args.lines)
    else:
        found = _attach(record).logs(args.lines)
    for name, text in found.items():
        print(f"== {name}\n{text}", end="")


def _scale(args: argparse.Namespace) -> None:
    # `scale 4` names no cluster: argparse takes the last word as the size.
    record = _chosen(args)
    if args.size < 0:
        raise ClusterError(f"the size is {args.size}, expected 0 or more")
    if record.process is None:
        _attach(record).scale(args.size)
    elif record.is_owned():
        draft = record.folder / ".size"
        draft.write_text(str(args.size))
        draft.rename(record.folder / "size")
    else:
        raise ClusterError(f"the owner of '{record.name}' has ended")
    print(f"gt cluster: '{record.name}' is to have {args.size}")


if __name__ == "__main__":
    sys.exit(main())
