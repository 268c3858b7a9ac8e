"""Measure hot paths beside PyTorch eager, torch.compile and jax.jit, in one run.

Writes the part "Hot paths" of docs/benchmarks.md. Rounds alternate between the sides; the table has
medians over the rounds, and PyTorch against itself (A/A).
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

from programs import Asked
from run import cluster

HERE = Path(__file__).resolve().parent
HEADING = "## Hot paths\n"

#: name: (description, {side: goals, as largest ratios to other sides})
WORK = {
    "mlp": (
        "MLP 784-256-10, batch 64, SGD step",
        {"gt": "0.6 x eager, 0.9 x best", "tcp": "0.8 x"},
    ),
    "chain": (
        "6 elementwise operations and a sum, 1M floats",
        {"gt": "0.35 x eager, 1.0 x compile"},
    ),
    "small": ("MLP 64-64-10, batch 8, loss fetched every step", {"gt": "0.6 x eager"}),
    "transformer": (
        "transformer step: 4 layers, d 256, 8 heads, T 128, batch 8, AdamW",
        {"gt": "1.0 x eager", "gt pytorch": "1.05 x compile"},
    ),
    "epilogue": ("a product of 512 x 256 x 1024, a bias and gelu", {}),
    "outer": ("4 elementwise operations on 1M floats, summed over the rows", {}),
    "attention": ("softmax(q k' / 8) v, 16 x 256 x 256 x 64, by its parts", {}),
}

SIDES = {
    "eager": ("torch", {}),
    "again": ("torch", {}),
    "compile": ("compile", {}),
    "jit": ("jit", {}),
    "gt": ("gt", {}),
    "gt cold": ("gt", {"GT_AUTO_COMPILE": "0"}),
    "gt pytorch": ("gt", {"GT_BACKEND": "pytorch", "GT_AUTO_COMPILE": "1"}),
    "gt pytorch cold": ("gt", {"GT_BACKEND": "pytorch", "GT_AUTO_COMPILE": "0"}),
    "tcp": (None, {}),
}


class Runner:
    """A benchmark process that runs rounds on demand."""

    def __init__(self, side: str, threads: int, work: str, environment: dict[str, str]):
        flags = "--xla_cpu_multi_thread_eigen=true"
        self.process = Asked(
            [sys.executable, HERE / "processes" / "hot.py", side, str(threads), work],
            stderr=subprocess.DEVNULL,
            env={
                **os.environ,
                **environment,
                "OMP_NUM_THREADS": str(threads),
                "XLA_FLAGS": flags,
                "TORCHINDUCTOR_COMPILE_THREADS": "1",
            },
        )
        line = self.process.stdout.readline().split()
        self.works = line[:1] == ["ready"]
        #: Seconds to the end of the first use, including compilation.
        self.first = float(line[1]) if self.works else float("nan")

    def run(self) -> dict:
        """Run one round, after the threads of the previous side have stopped spinning."""
        time.sleep(0.25)
        return json.loads(self.process.ask("go"))

    def stop(self) -> None:
        """End the process."""
        self.process.stop(timeout=30)


def measure(work: str, threads: int, rounds: int, wanted: list[str]) -> list[str]:
    """Run one work on all sides; return the table's rows."""
    address, processes = cluster(threads)
    runners = {}
    for name in wanted:
        side, environment = SIDES[name]
        runner = Runner(side or address, threads, work, environment)
        if runner.works:
            runners[name] = runner
    results: dict[str, list] = {name: [] for name in runners}
    for _ in range(rounds):
        for name, runner in runners.items():
            results[name].append(runner.run())
    for runner in runners.values():
        runner.stop()
    for process in processes:
        process.terminate()
        process.wait(timeout=20)
    text, targets = WORK[work]
    median = {
        name: statistics.median(result["us"] for result in all_) for name, all_ in results.items()
    }
    cpu = {
        name: statistics.median(result["cpu_us"] for result in all_)
        for name, all_ in results.items()
    }
    best = min((median[side] for side in ("compile", "jit") if side in median), default=None)
    lines = []
    for name in wanted:
        if name not in median:
            lines.append(f"| {text} | {threads} | {name} | does not run | | | | | |")
            continue
        us = median[name]
        to_best = f"{us / best:.2f} x" if best else ""
        to_compile = f"{us / median['compile']:.2f} x" if "compile" in median else ""
        lines.append(
            f"| {text} | {threads} | {name} | {us:,.1f} us | **{us / median['eager']:.2f} x** | "
            f"{to_compile} | {to_best} | {targets.get(name, '')} | {cpu[name]:,.0f} us | "
            f"{runners[name].first:.1f} s |"
        )
        print(lines[-1], flush=True)
    return lines


def example(package: str, name: str) -> str:
    """Run an example of a Rust package; return its output."""
    command = ["cargo", "run", "--quiet", "--release", "-p", package, "--example", name]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--work", choices=WORK, nargs="+", default=list(WORK))
    parser.add_argument("--side", choices=SIDES, nargs="+", default=list(SIDES))
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    args = parser.parse_args()

    import jax
    import torch

    lines = []
    for threads in args.threads:
        for work in args.work:
            lines += measure(work, threads, args.rounds, args.side)
    simulated, detector = example("gt-sim", "hotpaths"), example("gt-client", "detector")
    part = f"""{HEADING}
PyTorch {torch.__version__} eager (with its fused optimizers), torch.compile of loss and optimizer
step, JAX {jax.__version__} jit of the whole step with donated buffers, and GT: on its native
engine ("gt"), with hot paths turned off ("gt cold"), on the PyTorch engine with compilation
("gt pytorch"), and on a server with a worker, in separate processes ("tcp"). Made by
`python benches/hot.py --write docs/benchmarks.md`: {args.rounds} alternating rounds, medians.
"best" is the better of torch.compile and jit. "first" is the time to the end of the first use,
including compilation.

| work | threads | side | time | of eager | of compile | of best | at most | CPU | first |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{chr(10).join(lines)}

The cost of an iteration of a loop once it is hot, counted in the simulation
(`cargo run --release -p gt-sim --example hotpaths`):

{simulated}
The cost of hot-path detection in a stream that never repeats, in the Rust client without Python
(`cargo run --release -p gt-client --example detector`):

{detector}"""
    print(part)
    if args.write:
        before, _, after = args.write.read_text().partition(HEADING)
        # Text after the next heading is kept.
        rest = re.search(r"\n###? .*", after, re.DOTALL)
        args.write.write_text(
            before.rstrip() + "\n\n" + part.rstrip() + "\n" + (rest.group() if rest else "")
        )


if __name__ == "__main__":
    main()
