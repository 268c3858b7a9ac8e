"""`python -m gt.server`: run a dispatcher that workers and clients connect to."""

import argparse
import os
import subprocess
import sys

from gt import _gt
from gt._processes import at_least, stop_at_sigterm


def main(argv: list[str] | None = None) -> int:
    """Run a server until it is stopped; give the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt server", description="Run a dispatcher that workers and clients connect to."
    )
    parser.add_argument("-p", "--port", type=int, default=9000, help="port (default 9000)")
    parser.add_argument(
        "-H", "--host", default="localhost", help="host to listen at (default localhost)"
    )
    parser.add_argument("--ipc", metavar="PATH", help="listen at a socket file instead")
    parser.add_argument("--key-file", help="file with the cluster key (default: GT_KEY, or made)")
    parser.add_argument(
        "--insecure", action="store_true", help="let anybody in, without keys or encryption"
    )
    parser.add_argument("--log-file", help="write the instruction log here")
    parser.add_argument(
        "--worker-wait",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="how long a client waits for a first worker (default 30)",
    )
    parser.add_argument(
        "--spawn-gpu-workers",
        type=at_least(0),
        default=0,
        metavar="N",
        help="also start N workers on this machine, one per GPU",
    )
    parser.add_argument(
        "--backend", metavar="ENGINE", help="the engine of these workers (default: as theirs)"
    )
    args = parser.parse_args(argv)
    if not args.ipc and not 1 <= args.port <= 65535:
        parser.error(f"the port is {args.port}, expected 1 to 65535")
    address = f"ipc://{args.ipc}" if args.ipc else f"{args.host}:{args.port}"
    workers: list[subprocess.Popen] = []

    def ready() -> None:
        print(f"gt server: listening at {address}", flush=True)
        for number in range(args.spawn_gpu_workers):
            workers.append(_start_worker(args, address, number))

    stop_at_sigterm()
    try:
        _gt.run_server(
            address, ready, args.key_file, args.insecure, args.log_file, args.worker_wait
        )
    except KeyboardInterrupt:
        print("gt server: stopped", flush=True)
    except (ConnectionError, ValueError) as error:
        print(f"gt server: {error}", file=sys.stderr)
        return 1
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(timeout=10)
    return 0


def _start_worker(args: argparse.Namespace, address: str, number: int) -> subprocess.Popen:
    command = [sys.executable, "-m", "gt.worker", "--address", address, "--id", str(number)]
    if args.key_file:
        command += ["--key-file", args.key_file]
    if args.insecure:
        command += ["--insecure"]
    if args.backend:
        command += ["--backend", args.backend]
    return subprocess.Popen(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": str(number)})


if __name__ == "__main__":
    sys.exit(main())
