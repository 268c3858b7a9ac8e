"""Start a server and workers on this machine, and try them out.

python simple_launch.py                # one worker, a small test
python simple_launch.py --workers 2
python simple_launch.py --no-test      # keep running until Ctrl-C
"""

import argparse
import socket
import subprocess
import sys
import time


def start(*command: str) -> subprocess.Popen:
    """Start one of GT's programs and wait until it says that it is ready."""
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)
    if not process.stdout.readline():
        raise RuntimeError(f"{command[0]} ended with status {process.wait()}")
    return process


def start_cluster(workers: int) -> tuple[str, list[subprocess.Popen]]:
    """Start a server on a free port, and workers; give the address and the processes."""
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
    """Stop workers first, then the server."""
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        process.communicate(timeout=20)


def test(address: str) -> None:
    """Compute something on the cluster and check it."""
    import gt

    gt.connect(address)
    a, b = gt.tensor([1, 2, 3, 4]), gt.tensor([5, 6, 7, 8])
    assert (a + b).tolist() == [6, 8, 10, 12]
    x = gt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x @ x).sum().backward()
    assert x.grad.tolist() == [[7, 11], [9, 13]]
    gt.disconnect()
    print("test passed")


def main() -> None:
    """Run the launcher."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--no-test", action="store_true", help="keep running until Ctrl-C")
    args = parser.parse_args()
    address, processes = start_cluster(args.workers)
    print(f"a server with {args.workers} worker(s) runs at {address}", flush=True)
    try:
        if args.no_test:
            print(f"use it with gt.connect('{address}'); Ctrl-C stops it", flush=True)
            while all(process.poll() is None for process in processes):
                time.sleep(0.2)
        else:
            test(address)
    except KeyboardInterrupt:
        print("stopping")
    finally:
        stop(processes)


if __name__ == "__main__":
    main()
