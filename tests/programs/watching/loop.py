"""Multiply matrices until a line is read. Argument: the number of workers (1), or a server."""

import sys
import threading

import gt


def start(where: str) -> list[str]:
    """Connect, or start workers; return a list that has an element once a line was read."""
    if ":" in where:
        gt.connect(where)
    else:
        gt.gpu_workers(int(where))
    lines: list[str] = []
    threading.Thread(target=lambda: lines.append(sys.stdin.readline()), daemon=True).start()
    return lines


if __name__ == "__main__":
    lines = start(*sys.argv[1:] or ["1"])
    x = gt.randn(300, 300)
    (x + 1).sum().item()
    print("at work", flush=True)
    while not lines:
        (x @ x).relu().sum().item()
