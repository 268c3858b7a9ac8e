"""One side of the GPU benchmarks: a process that runs a round for each line of input.

usage: gpu.py eager|graph|compile|gt WORK [tiny]

`graph` captures PyTorch's eager step as a CUDA graph and replays it. `gt` is embedded, on the
engine that the environment names. Answers each line with the seconds of one use.
"""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from workloads.gpu import WORKS, Side  # noqa: E402

SIDE, NAME, TINY = sys.argv[1], sys.argv[2], "tiny" in sys.argv[3:]
ROUND_S = 0.02 if TINY else 0.5


def graphed(work, torch):
    """Return a function that replays one step of a work as a CUDA graph."""
    if not torch.cuda.is_available():
        return work.step  # `tiny` tests everything but the graph.
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    # The first step must run on this stream: gradients refer to their stream, and work on another
    # stream cannot be captured.
    with torch.cuda.stream(side):
        for _ in range(3):
            work.step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = work.step()

    def replay():
        graph.replay()
        return made

    return replay


def prepare():
    """Return a work and its step."""
    if SIDE == "gt":
        import gt

        work = WORKS[NAME](Side(gt, None, TINY), lambda function: function)
        return work, work.step
    import torch

    device = "cpu" if TINY else "cuda"
    wrap = torch.compile if SIDE == "compile" else lambda function: function
    work = WORKS[NAME](Side(torch, device, TINY), wrap)
    return work, graphed(work, torch) if SIDE == "graph" else work.step


def use(work, step) -> float:
    """Run the steps that are timed together; return the seconds of one."""
    start = time.perf_counter()
    for _ in range(work.uses):
        made = step()
    work.result(made)
    return (time.perf_counter() - start) / work.uses


def settle(work, step) -> None:
    """Run until GT has compiled in the background and runs almost all operations compiled."""
    import gt

    def operations() -> dict:
        return next(iter(gt.debug.get_worker_stats().values()))["operations"]

    few = TINY or NAME == "copy"
    for _ in range(8 if few else 300):
        before = operations()
        use(work, step)
        after = operations()
        if after["compiled"] - before["compiled"] > 0.95 * (after["total"] - before["total"]):
            break
        time.sleep(0.02 if TINY else 0.5)


def main() -> None:
    """Prepare the work, then run a round for each line of input."""
    start = time.perf_counter()
    work, step = prepare()
    use(work, step)
    first = time.perf_counter() - start
    for _ in range(3):
        use(work, step)
    if SIDE == "gt":
        settle(work, step)
    print("ready", first, flush=True)
    for _ in sys.stdin:
        times: list[float] = []
        since = time.perf_counter()
        while not times or time.perf_counter() - since < ROUND_S:
            times.append(use(work, step))
        print(sorted(times)[len(times) // 2] / getattr(work, "parts", 1), flush=True)


if __name__ == "__main__":
    main()
    # Exit without waiting for compiler processes that are left.
    sys.stdout.flush()
    os._exit(0)
