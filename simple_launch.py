"""Start a server and workers on this machine, and run a small test on them.

python simple_launch.py                # one worker, a small test
python simple_launch.py --workers 2
python simple_launch.py --no-test      # keep running until Ctrl-C
"""

import argparse
import select
import signal
import socket
import subprocess
import sys
import time

#: The seconds that a program may take to start or to stop.
SECONDS = 30


def start(*command: str) -> subprocess.Popen:
    """Start one of GT's programs, and wait until it reports that it is ready."""
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ready, _, _ = select.select([process.stdout], [], [], SECONDS)
        if ready and process.stdout.readline():
            return process
    except BaseException:
        stop([process])
        raise
    stop([process])
    reason = f"ended with status {process.returncode}" if ready else f"not ready in {SECONDS} s"
    raise RuntimeError(f"python -m {' '.join(command)} {reason}")


def start_cluster(workers: int) -> tuple[str, list[subprocess.Popen]]:
    """Start a server on a free port, and workers; return the address and the processes."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    processes = [start("gt.server", "-p", port)]
    try:
        for number in range(workers):
            worker = ("gt.worker", "--host", "localhost", "-p", port, "--id", str(number))
            processes.append(start(*worker))
    except BaseException:
        stop(processes)
        raise
    return f"localhost:{port}", processes


def stop(processes: list[subprocess.Popen]) -> None:
    """Stop the workers, then the server; kill those that do not stop in time."""
    for process in reversed(processes):
        process.terminate()
    for process in reversed(processes):
        try:
            process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def end_politely() -> None:
    """Make SIGTERM raise SystemExit, so that this program stops the processes it has started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def test(address: str) -> None:
    """Check sums and gradients that the cluster computes."""
    import gt

    gt.connect(address)
    a, b = gt.tensor([1, 2, 3, 4]), gt.tensor([5, 6, 7, 8])
    assert (a + b).tolist() == [6, 8, 10, 12]
    x = gt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x @ x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[7, 11], [9, 13]]
    gt.disconnect()
    print("test passed")


def main(argv=None) -> int:
    """Run the launcher; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1, help="number of workers (default 1)")
    parser.add_argument("--no-test", action="store_true", help="keep running until Ctrl-C")
    args = parser.parse_args(argv)
    if args.workers < 1:
        parser.error(f"--workers is {args.workers}, expected at least 1")

    end_politely()
    processes: list[subprocess.Popen] = []
    try:
        address, processes = start_cluster(args.workers)
        print(f"a server with {args.workers} worker(s) runs at {address}", flush=True)
        if not args.no_test:
            test(address)
            return 0
        print(f"use it with gt.connect('{address}'); Ctrl-C stops it", flush=True)
        while all(process.poll() is None for process in processes):
            time.sleep(0.2)
        print("one of the processes has ended; stopping the others", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopping")
        return 0
    except RuntimeError as error:
        print(f"simple_launch: {error}", file=sys.stderr)
        return 1
    finally:
        stop(processes)


if __name__ == "__main__":
    sys.exit(main())
