"""`gt server`: run a dispatcher that workers and clients connect to."""

import argparse
import os
import shlex
import signal
import subprocess
import sys
import threading

from gt import _gt
from gt._processes import (
    add_end_option,
    at_least,
    join_address,
    named_key_file,
    size,
    stop_at_eof,
    stop_at_signals,
)
from gt.engines.gpus import has_traces
from gt.scripts._page import add_page_options, check_page_options, page_options


def main(argv: list[str] | None = None) -> int:
    """Run a server until it is stopped; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt server", description="Run a dispatcher that workers and clients connect to."
    )
    parser.add_argument(
        "-p", "--port", type=int, default=9000, help="port (default 9000; 0 for any that is free)"
    )
    parser.add_argument(
        "-H", "--host", default="localhost", help="host to listen at (default localhost)"
    )
    parser.add_argument("--ipc", metavar="PATH", help="listen at a socket file instead")
    parser.add_argument(
        "--publish",
        metavar="FILE",
        help="write the address to this file while listening: programs and workers connect to "
        "file:///PATH, wherever the server is restarted",
    )
    parser.add_argument(
        "--key-file",
        help="file with the cluster key, - for standard input (default: GT_KEY, or made)",
    )
    add_end_option(parser)
    parser.add_argument(
        "--insecure", action="store_true", help="accept every peer, without keys or encryption"
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
        "--workers",
        type=at_least(0),
        default=0,
        metavar="N",
        help="the number of workers that are expected, not started (`gt worker` starts one): "
        "sessions that begin earlier wait for them, up to 2 s",
    )
    parser.add_argument(
        "--spawn-gpu-workers",
        "--spawn_gpu_workers",
        type=at_least(0),
        default=0,
        metavar="N",
        help="also start N workers on this machine, one per GPU",
    )
    parser.add_argument(
        "--data-root",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder in which workers may read and write files for clients; may be repeated",
    )
    parser.add_argument(
        "--policy",
        metavar="FILE",
        help="the quotas and shares of users, teams and keys, in YAML; reloaded on SIGHUP",
    )
    parser.add_argument(
        "--lineage",
        type=lambda text: 0 if text == "0" else size(text),
        default=256 << 20,
        metavar="SIZE",
        help="the bytes of each session's stream that are kept to restore its tensors when a "
        "worker is lost (default 256MiB; 0 for none)",
    )
    parser.add_argument(
        "--lineage-time",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="the limit on the time to recompute them (default 5)",
    )
    parser.add_argument(
        "--lineage-disk",
        type=lambda text: 0 if text == "0" else size(text),
        default=256 << 20,
        metavar="SIZE",
        help="the bytes of a session's tensors that the server backs up on disk while there is "
        "only one worker (default 256MiB), in the folder of --state, or TMPDIR",
    )
    parser.add_argument(
        "--lineage-total",
        type=size,
        default=4 << 30,
        metavar="SIZE",
        help="the limit of --lineage for all sessions together, in equal parts (default 4GiB)",
    )
    parser.add_argument(
        "--grace",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="how long a session waits for its client when their connection is lost (default 600)",
    )
    parser.add_argument(
        "--state",
        metavar="FOLDER",
        help="store here what is needed to resume when the server is restarted with the same "
        "folder; clients and workers wait for it (default: none, sessions end with the server)",
    )
    parser.add_argument(
        "--backend",
        metavar="ENGINE",
        help="the engine of workers that the server starts (default: that of `gt worker`)",
    )
    parser.add_argument(
        "--web",
        metavar="[HOST:]PORT",
        help="also serve a web page, which shows who runs and who waits, at this port of 127.0.0.1 "
        "or this address",
    )
    add_page_options(parser)
    args = parser.parse_args(argv)
    if args.web is None and (
        args.web_name or args.web_token_file or args.insecure_web or args.web_actions
    ):
        parser.error(
            "--web-name, --web-token-file, --web-actions and --insecure-web need --web 8265"
        )
    check_page_options(parser, args)
    if not args.ipc and not 0 <= args.port <= 65535:
        parser.error(f"the port is {args.port}, expected 0 to 65535")
    args.key_file = named_key_file(args.key_file)
    address = f"ipc://{args.ipc}" if args.ipc else join_address(args.host, args.port)
    gpus = _gpus(args.spawn_gpu_workers)
    if len(gpus) < args.spawn_gpu_workers:
        parser.error(
            f"--spawn-gpu-workers is {args.spawn_gpu_workers}, but CUDA_VISIBLE_DEVICES names "
            f"{len(gpus)} GPU(s): {','.join(gpus) or 'none'}"
        )
    if gpus and not has_traces():
        parser.error(
            f"--spawn-gpu-workers is {args.spawn_gpu_workers}, but this machine has no GPU\n"
            f"  hint: `gt worker --address {address}` starts a worker on the CPU"
        )
    workers: list[subprocess.Popen[bytes]] = []
    is_stopping = threading.Event()

    def ready(address: str, published: str, link: str | None, acting_link: str | None) -> None:
        print(f"gt server: listening at {address}\n{_how_to_connect(args, published)}", flush=True)
        if link is not None:
            print(f"  a browser:  {link}", flush=True)
        if acting_link is not None:
            print(f"  to act:     {acting_link}", flush=True)
        if args.workers > len(gpus):
            print(
                f"  --workers {args.workers} starts none: start each with the line above",
                flush=True,
            )
        for number, gpu in enumerate(gpus):
            worker = _start_worker(args, address, published, number, gpu)
            workers.append(worker)
            watch = threading.Thread(
                target=_tell_end, args=(number, worker, is_stopping), daemon=True
            )
            watch.start()

    is_stopped = stop_at_signals()
    if args.until_eof:
        stop_at_eof(silence=args.silence)
    is_hung_up = threading.Event()
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: is_hung_up.set())

    def wants_reload() -> bool:
        if not is_hung_up.is_set():
            return False
        is_hung_up.clear()
        if args.policy is None:
            print("gt server: SIGHUP, but there is no --policy to reload", flush=True)
            return False
        print(f"gt server: reloading the policy: {args.policy}", flush=True)
        return True

    try:
        _gt.run_server(
            address,
            ready,
            is_stopped,
            args.key_file,
            args.insecure,
            args.log_file,
            args.worker_wait,
            args.data_root,
            args.policy,
            args.lineage,
            args.lineage_time,
            args.lineage_disk,
            args.lineage_total,
            args.grace,
            args.state,
            max(args.workers, args.spawn_gpu_workers),
            wants_reload,
            args.publish,
            None if args.web is None else page_options(args, args.web),
        )
    except KeyboardInterrupt:
        print("gt server: stopped", flush=True)
    except (OSError, ValueError) as error:
        print(f"gt server: {error}", file=sys.stderr)
        return 1
    finally:
        is_stopping.set()
        _stop(workers)
    return 0


def _how_to_connect(args: argparse.Namespace, address: str) -> str:
    """Return lines to paste: how a program, a worker and a watcher connect to the server."""
    if args.ipc:
        worker, watcher = f"--address {shlex.quote(address)}", f"--pid {os.getpid()}"
    else:
        host, port = address.rsplit(":", 1)
        host = host.strip("[]")
        worker, watcher = f"--host {host} -p {port}", f"--host {host} --port {port}"
    client = f'"{address}"'
    if args.insecure:
        client, worker, watcher = (
            f"{client}, insecure=True",
            f"{worker} --insecure",
            f"{watcher} --insecure",
        )
    elif args.key_file or os.environ.get("GT_KEY"):
        # The server's own key may do everything: users get keys that are derived from it.
        client += ', key_file="client.key"'
        worker, watcher = f"{worker} --key-file worker.key", f"{watcher} --key-file watcher.key"
    return f"""\
  a program:  gt.connect({client})
  a worker:   gt worker {worker}
  a watcher:  gt top {watcher}"""


def _gpus(count: int) -> list[str]:
    """Return the first `count` GPUs that CUDA_VISIBLE_DEVICES allows, as it names them."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [str(number) for number in range(count)]
    return [gpu.strip() for gpu in visible.split(",") if gpu.strip()][:count]


def _start_worker(
    args: argparse.Namespace, address: str, published: str, number: int, gpu: str
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "gt.worker", "--address", address, "--id", str(number)]
    if args.key_file:
        command += ["--key-file", args.key_file]
    if args.insecure:
        command += ["--insecure"]
    if args.backend:
        command += ["--backend", args.backend]
    for root in args.data_root:
        command += ["--data-root", root]
    if args.state:
        command += ["--state", os.path.join(args.state, f"worker-{number}")]
    if args.host == "0.0.0.0" and not args.ipc:
        # They connect over the loopback address, at which other machines cannot reach them.
        command += ["--peer-host", published.rsplit(":", 1)[0]]
    return subprocess.Popen(command, env={**os.environ, "CUDA_VISIBLE_DEVICES": gpu})


def _tell_end(number: int, process: subprocess.Popen[bytes], is_stopping: threading.Event) -> None:
    """Wait for a worker, and report if it ends while the server is running."""
    status = process.wait()
    if not is_stopping.is_set():
        print(
            f"gt server: worker {number} has ended (exit status {status}); it is not restarted",
            file=sys.stderr,
            flush=True,
        )


def _stop(workers: list[subprocess.Popen[bytes]]) -> None:
    for worker in workers:
        worker.terminate()
    for worker in workers:
        try:
            worker.wait(timeout=10)
        except subprocess.TimeoutExpired:
            worker.kill()


if __name__ == "__main__":
    sys.exit(main())
