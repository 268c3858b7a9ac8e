"""One side of the benchmarks for GPUs, in its own process: runs rounds when it is told to.

usage: gpu_player.py eager|graph|compile|gt WORK [tiny]

`graph` captures what PyTorch does eagerly as a CUDA graph and replays it. `gt` is embedded, on the
engine that the environment names. Reads a line a round, answers with the seconds of one use.
"""

import os
import sys
import time

from gpu_works import WORKS, Side

SIDE, NAME, TINY = sys.argv[1], sys.argv[2], "tiny" in sys.argv[3:]
ROUND_S = 0.02 if TINY else 0.5


def graphed(work, torch):
    """Give a step that replays what one step does on the GPU."""
    if not torch.cuda.is_available():
        return work.step  # in small, to see that all else works
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    # Not once before this on another stream: what gradients remember of it, no graph can have.
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
    """Make the work; give it and its step."""
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
    """Run as many steps as are timed together; give the seconds of one."""
    start = time.perf_counter()
    for _ in range(work.uses):
        made = step()
    work.result(made)
    return (time.perf_counter() - start) / work.uses


def settle(work, step) -> None:
    """Let GT compile in the background, until almost all is run from that."""
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
    """Make ready, then run a round for each line."""
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
        times, since = [], time.perf_counter()
        while not times or time.perf_counter() - since < ROUND_S:
            times.append(use(work, step))
        print(sorted(times)[len(times) // 2] / getattr(work, "parts", 1), flush=True)


if __name__ == "__main__":
    main()
    # What compilers leave behind is not waited for.
    sys.stdout.flush()
    os._exit(0)
