"""`python -m gt.cluster.node`: run the workers of one machine, one for each GPU.

Schedulers start one on each machine. It starts the workers again that fail; at SIGTERM they hand
over what they have and it ends; with `--until-eof` it ends them at once when its standard input
does, and the line `drain` is as SIGTERM. The line `serve N` has it run its workers if its
`--number` is less than N, and drain them else.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from gt._processes import DRAIN, add_end_option, at_least, named_key_file, stop_at_eof
from gt.cluster.devices import device_environment, gpus, memory_part
from gt.cluster.programs import worker_command
from gt.cluster.show import LogShow
from gt.cluster.supervisor import Supervisor, WorkerProgram

#: How often it looks whether all workers have ended, in seconds.
_EVERY = 0.1


def main(argv: list[str] | None = None) -> int:
    """Run the workers until a signal, or until all have ended; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m gt.cluster.node",
        description="Run the workers of one machine. Options that are not listed are those of "
        "`gt worker`.",
    )
    parser.add_argument("--address", required=True, help="the server's address, as for gt worker")
    parser.add_argument("--key-file", required=True, help="file with the key, - for standard input")
    parser.add_argument("--logs", required=True, metavar="FOLDER", help="where the logs are")
    parser.add_argument(
        "--workers",
        type=at_least(1),
        metavar="N",
        help="the number of workers (default: the number of GPUs, or 1)",
    )
    parser.add_argument(
        "--name", default=socket.gethostname(), help="the beginning of their names (default: host)"
    )
    parser.add_argument(
        "--number", type=at_least(0), default=0, help="its number among the machines (default 0)"
    )
    parser.add_argument(
        "--state",
        metavar="PREFIX",
        help="the beginning of the names of the workers' folders, each as of `gt worker --state` "
        "(default: none)",
    )
    parser.add_argument(
        "--show-logs", action="store_true", help="write the logs to standard output, too"
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how long they wait for the server to listen (default 60)",
    )
    add_end_option(parser)
    args, options = parser.parse_known_args(argv)
    key_file = named_key_file(args.key_file)
    assert key_file is not None
    key = Path(key_file).read_text().strip()
    count = args.workers or len(gpus()) or 1
    given = {option.split("=")[0] for option in options}
    if not gpus() and "--threads" not in given:
        options += ["--threads", str(max(1, (os.cpu_count() or 1) // count))]
    if not gpus() and "--memory" not in given and count > 1:
        options += ["--memory", str(memory_part(count))]

    def program(number: int) -> WorkerProgram:
        state = ["--state", f"{args.state}-{args.number}-{number}"] if args.state else []
        command = worker_command(
            address=args.address,
            name=f"{args.name}-{number}",
            wait=args.wait,
            options=[*options, *state],
        )
        return WorkerProgram(command, device_environment(number))

    is_leaving, is_idle = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_leaving.set())
    logs = Path(args.logs)
    logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    workers = Supervisor(program, key=key, logs=logs, prefix=f"{args.name}-")
    show = LogShow(logs) if args.show_logs else None

    def command(line: str) -> None:
        if line == DRAIN:
            is_leaving.set()
        elif line.startswith("serve ") and not is_leaving.is_set():
            if args.number < int(line.split()[1]):
                workers.scale(count)
                is_idle.clear()
            else:
                is_idle.set()
                workers.drain()

    workers.scale(count)
    if args.until_eof:
        stop_at_eof(before=workers.end, command=command, silence=args.silence)
    print(f"gt node: {count} workers on {args.name}", flush=True)
    while not is_leaving.is_set() and (is_idle.is_set() or not workers.has_stopped()):
        is_leaving.wait(_EVERY)
    workers.drain()
    while workers.running():
        time.sleep(_EVERY)
    workers.end()
    if show is not None:
        show.stop()
    if workers.failure is not None:
        print(f"gt node: {workers.failure}", file=sys.stderr, flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
