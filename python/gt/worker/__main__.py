"""`gt worker`: run a worker that serves a dispatcher. `gt worker drain` ends one."""

import argparse
import os
import socket
import sys
import time
from collections.abc import Callable

from gt import _gt, engines
from gt._processes import (
    Departure,
    add_end_option,
    at_least,
    join_address,
    named_key_file,
    size,
    stop_at_eof,
    stop_at_signals,
)
from gt.engines.gpus import DeviceError
from gt.worker import drain


def main(argv: list[str] | None = None) -> int:
    """Run a worker until it is stopped or its server ends; return the exit status."""
    given = sys.argv[1:] if argv is None else argv
    if given[:1] == ["drain"]:
        return drain.main(given[1:])
    parser = argparse.ArgumentParser(
        prog="gt worker",
        description="Run a worker that serves a dispatcher. `gt worker drain WORKER` moves the "
        "sessions of one to others and ends it.",
    )
    parser.add_argument("--host", default="localhost", help="the server's host")
    parser.add_argument("-p", "--port", type=int, default=9000, help="its port (default 9000)")
    parser.add_argument(
        "--address",
        help="the server's address, instead of host and port: HOST:PORT, ipc:///PATH, or "
        "file:///PATH of a file in which it publishes its address",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="how long to wait for the server if it does not listen yet (default 0)",
    )
    parser.add_argument("--id", help="this worker's name (default: machine and process)")
    parser.add_argument(
        "--key-file",
        help="file with the key, - to read it from standard input (default: GT_KEY, or found)",
    )
    add_end_option(parser)
    parser.add_argument(
        "--insecure", action="store_true", help="for a server that was started with --insecure"
    )
    parser.add_argument(
        "--backend",
        metavar="ENGINE",
        help="the engine: native, pytorch, numpy, jax, or module:Class for your own (default "
        "GT_BACKEND, else pytorch if it sees a GPU, else native)",
    )
    parser.add_argument(
        "--threads", type=at_least(1), help="threads for one large operation (default: all cores)"
    )
    parser.add_argument(
        "--data-root",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder in which it may read and write files for clients; may be repeated",
    )
    parser.add_argument(
        "--memory",
        type=size,
        metavar="SIZE",
        help="the memory for tensors, as 16GB or 512MiB (default GT_MEMORY, or nine tenths of the "
        "device's)",
    )
    parser.add_argument(
        "--spill-dir",
        metavar="FOLDER",
        help="spill tensors to this folder when memory is full, least recently used first "
        "(default GT_SPILL_DIR, else nothing is spilled)",
    )
    parser.add_argument(
        "--spill-limit",
        type=size,
        metavar="SIZE",
        help="the most bytes in that folder (default GT_SPILL_LIMIT, else as much as --memory)",
    )
    parser.add_argument(
        "--state",
        metavar="FOLDER",
        help="store its session snapshots there, so that sessions resume when the server and all "
        "workers were killed and are restarted with their folders (default: none)",
    )
    parser.add_argument(
        "--peer-host",
        help="host at which other workers reach this one (default: the address that it connects "
        "to the server from)",
    )
    parser.add_argument(
        "--rack",
        default=_rack(),
        metavar="NAME",
        help="the rack of this machine, or whatever else is near each other; workers of one rack "
        "become neighbours in a mesh (default GT_RACK, else SLURM's switch)",
    )
    parser.add_argument(
        "--drain-timeout",
        type=float,
        default=25.0,
        metavar="SECONDS",
        help="at the first SIGTERM, hand over slots and tensors to other workers, in this time at "
        "most (default 25; 0 to end at once, as at Ctrl-C or a second SIGTERM)",
    )
    args = parser.parse_args(given)
    if not 0 <= args.drain_timeout <= 86_400:
        parser.error(f"--drain-timeout is {args.drain_timeout:g}, expected 0 to 86400 seconds")
    if not 0 <= args.wait <= 86_400:
        parser.error(f"--wait is {args.wait:g}, expected 0 to 86400 seconds")
    args.key_file = named_key_file(args.key_file)
    address = args.address or join_address(args.host, args.port)
    name = args.id or f"{socket.gethostname()}-{os.getpid()}"

    def ready(engine: str, threads: int | None, memory: int | None) -> None:
        has = [engine]
        if threads is not None:
            has.append(f"{threads} thread{'s' if threads > 1 else ''}")
        if memory is not None:
            has.append(f"{memory / 1e9:.1f} GB for tensors")
        if args.spill_dir or os.environ.get("GT_SPILL_DIR"):
            has.append(f"spills to {args.spill_dir or os.environ['GT_SPILL_DIR']}")
        print(f"gt worker: {name} serves {address}\n  {', '.join(has)}", flush=True)
        departure.is_possible = args.drain_timeout > 0

    departure = Departure()
    is_stopped = stop_at_signals(departure)
    if args.until_eof:
        stop_at_eof(departure, silence=args.silence)
    try:
        wait_for_server(address, args.wait)
        return serve(address, name, ready, is_stopped, departure, args)
    except KeyboardInterrupt:
        print(f"gt worker: {name} stopped", flush=True)
        return 0


def backend_of(argv: list[str]) -> str | None:
    """Return the engine that a command line names."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--backend")
    backend: str | None = parser.parse_known_args(argv)[0].backend
    return backend


def wait_for_server(address: str, limit: float) -> None:
    """Wait until a server listens at an address, or the limit in seconds is over."""
    until = time.monotonic() + limit
    while time.monotonic() < until and not _gt.is_listening(address):
        time.sleep(0.05)


def serve(
    address: str,
    name: str,
    ready: Callable[[str, int | None, int | None], None],
    is_stopped: Callable[[], bool],
    departure: Departure,
    args: argparse.Namespace,
) -> int:
    """Serve until the server ends, or the worker has left; return the exit status."""
    try:
        is_drained = _gt.run_worker(
            address,
            name,
            ready,
            is_stopped,
            args.key_file,
            args.insecure,
            args.threads,
            args.peer_host,
            args.rack,
            args.backend or engines.default(),
            args.data_root,
            args.memory,
            args.spill_dir,
            args.spill_limit,
            args.state,
            lambda: departure.has_begun,
            args.drain_timeout,
        )
    except (ConnectionError, ValueError, ImportError, DeviceError) as error:
        print(f"gt worker: {error}", file=sys.stderr)
        return 1
    print(f"gt worker: {name} {'drained' if is_drained else 'stopped'}", flush=True)
    return 0


def _rack() -> str:
    """Return the rack that the environment names, or the switch that SLURM does; "" for none."""
    # Such as `core.switch3.node17`: see `SLURM_TOPOLOGY_ADDR` in SLURM's manual of `srun`.
    switches, _, _ = os.environ.get("SLURM_TOPOLOGY_ADDR", "").rpartition(".")
    return os.environ.get("GT_RACK") or switches


if __name__ == "__main__":
    sys.exit(main())
