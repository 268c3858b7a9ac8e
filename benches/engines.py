"""Measure engines on varying shapes, beside PyTorch eager: `python benches/engines.py`.

The works are an operation on shapes that never repeat, and attention over a key/value cache that
grows by a row per step, as in text generation. Each side runs in its own process, in alternating
rounds; the table has medians over the rounds, and the fastest rounds, which are more reliable on a
machine with other load. `--write docs/benchmarks.md` writes its part of the page. `engines.py SIDE`
is one of the processes: it reads the name of a work from each line and answers with the
microseconds of a step.
"""

import argparse
import itertools
import os
import statistics
import sys
import time
from pathlib import Path

from sides import Side, write_part

HEADING = "## Shapes that vary"
STEPS = 128
#: Heads, and the width of each.
HEADS, WIDTH = 8, 64
SIDES = {
    "torch": {},
    "torch again": {},
    "pytorch": {"GT_BACKEND": "pytorch"},
    "native": {"GT_BACKEND": "native"},
    "jax": {"GT_BACKEND": "jax"},
}
NAMES = {
    "torch": "PyTorch eager",
    "torch again": "the same again",
    "pytorch": "GT, PyTorch engine",
    "native": "GT, native engine",
    "jax": "GT, JAX engine",
}
WORKS = {
    "operation": "an operation on shapes that never repeat",
    "attention": "softmax(q K' / 8) V, K and V grow by a row: a step",
    "fused": "the same by scaled_dot_product_attention: a step",
}


def play(side: str) -> None:
    """Run as one side."""
    if side.startswith("torch"):
        import torch as lib

        lib.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    else:
        import gt as lib

    shapes = itertools.product(range(16, 132), range(16, 132))

    def operation() -> int:
        """Run a small layer on inputs of new shapes each time; return the operation count."""
        total = lib.zeros(32)
        for _ in range(STEPS):
            rows, width = next(shapes)
            x, weight = lib.full((rows, width), 0.5), lib.full((width, 32), 0.1)
            hidden = (x @ weight + 1.0).relu()
            total = total + (hidden.exp() * 0.5 - hidden).sum(0)
        assert total.isfinite().all().item()
        return 10 * STEPS

    def attention(fused: bool) -> int:
        """Run steps of generation; return their number."""
        query, key, value = (lib.randn(1, HEADS, 1, WIDTH) for _ in range(3))
        keys, values = key, value
        for _ in range(STEPS):
            keys, values = lib.cat([keys, key], 2), lib.cat([values, value], 2)
            if fused:
                attend = lib.nn.functional.scaled_dot_product_attention
                query = attend(query, keys, values)
            else:
                scores = query @ keys.transpose(2, 3) * WIDTH**-0.5
                query = scores.softmax(-1) @ values
        assert query.isfinite().all().item()
        return STEPS

    works = {
        "operation": operation,
        "attention": lambda: attention(fused=False),
        "fused": lambda: attention(fused=True),
    }
    for work in works.values():
        work()
    print("ready", flush=True)
    for line in sys.stdin:
        run, times = works[line.strip()], []
        for _ in range(7):
            start = time.perf_counter()
            steps = run()
            times.append((time.perf_counter() - start) / steps * 1e6)
        print(statistics.median(times[2:]), min(times), flush=True)


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--side", choices=SIDES, nargs="+", default=list(SIDES))
    args = parser.parse_args()
    threads = {"OMP_NUM_THREADS": str(args.threads)}
    sides = {
        side: Side(__file__, side, environment={**threads, **SIDES[side]}) for side in args.side
    }
    lines = [
        "| work | side | a step | of PyTorch | fastest | of PyTorch |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for work, text in WORKS.items():
        taken: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
        for _ in range(args.rounds):
            for side, process in sides.items():
                median, fastest = map(float, process.ask(work).split())
                taken[side].append((median, fastest))
        found = {
            side: (statistics.median(m for m, _ in all_), min(f for _, f in all_))
            for side, all_ in taken.items()
        }
        base = found["torch"]
        for side, (median, fastest) in found.items():
            lines.append(
                f"| {text} | {NAMES[side]} | {median:.1f} us | **{median / base[0]:.2f} x** | "
                f"{fastest:.1f} us | {fastest / base[1]:.2f} x |"
            )
            print(lines[-1], flush=True)
    for process in sides.values():
        process.stop()
    if args.write:
        made = (
            f"Made by `python benches/engines.py --threads {args.threads} --rounds {args.rounds} "
            f"--write docs/benchmarks.md`: alternating rounds, medians; {os.cpu_count()} cores."
        )
        write_part(args.write, HEADING, [made, "", *lines])


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in SIDES:
        play(sys.argv[1])
    else:
        main()
