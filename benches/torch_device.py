"""Measure PyTorch programs on the device `cluster` beside PyTorch on the CPU, in one run.

Writes the part "PyTorch programs" of docs/benchmarks.md. Rounds alternate between the sides, each
in its own process; the table has medians over the rounds, and PyTorch against itself (A/A).
"""

import argparse
import json
import statistics
from pathlib import Path

from run import cluster
from sides import Side, in_turn, write_part

HERE = Path(__file__).resolve().parent
THREADS = 2
#: name: (description, unit, goal)
WORKS = {
    "add": ("small addition, in a chain", "us", "1.5 us; 1.0 us with the extension"),
    "recorded": ("the same, recorded by autograd", "us", "3.5 us; 2.0 us"),
    "mlp": ("MLP 784-256-10, batch 64: step, SGD", "ms", "1.0 x"),
    "qwen3": ("Qwen3 of transformers, tiny: step, AdamW", "ms", "1.1 x"),
    "generate": ("the same: 16 tokens, cache, batch 1", "ms", "1.1 x"),
    "compiled": ("the step, its model by torch.compile: inductor, backend='gt'", "ms", "1.0 x"),
}
#: side: (where it runs, whether with the C++ extension)
SIDES = {
    "cpu": ("cpu", False),
    "again": ("cpu", False),
    "embedded": ("embedded", False),
    "extension": ("embedded", True),
    "tcp": (None, True),
}


def measure(work: str, rounds: int) -> str:
    """Run one work on all sides; return the table's row."""
    address, processes = cluster(THREADS)
    settings = {"OMP_NUM_THREADS": str(THREADS), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    runners = {
        name: Side(
            HERE / "processes" / "torch_device.py",
            side or address,
            work,
            environment={**settings, "GT_TORCH_EXTENSION": str(int(extends))},
        )
        for name, (side, extends) in SIDES.items()
    }
    answers = in_turn(runners, rounds)
    results = {name: [json.loads(answer) for answer in found] for name, found in answers.items()}
    for process in processes:
        process.terminate()
        process.wait(timeout=20)
    medians = {name: statistics.median(found) for name, found in results.items()}
    text, unit, goal = WORKS[work]
    base = medians["cpu"]
    cells = [text, f"{base:,.2f} {unit}", f"{medians['again'] / base:.2f}"]
    for side in ("embedded", "extension", "tcp"):
        cells.append(f"{medians[side]:,.2f} {unit} = **{medians[side] / base:.2f} x**")
    return f"| {' | '.join([*cells, goal])} |"


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--work", choices=WORKS, nargs="+", default=list(WORKS))
    args = parser.parse_args()

    import torch
    import transformers
    from gt.torch import extension

    extension.build()
    columns = ["work", "PyTorch, CPU", "A/A", "`cluster`, embedded"]
    columns += ["with the extension", "the same, tcp", "goal (tcp: 1.3 x)"]
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for work in args.work:
        lines.append(measure(work, args.rounds))
        print(lines[-1], flush=True)
    part = f"""PyTorch {torch.__version__} and transformers
{transformers.__version__}, the same program on the device `cpu` and on `cluster`: {THREADS}
threads, medians of {args.rounds} alternating rounds. The extension is the
[part in C++](pytorch.md#faster-with-a-c-compiler). Made by
`python benches/torch_device.py --write docs/benchmarks.md`.

{chr(10).join(lines)}
"""
    if args.write:
        write_part(args.write, "## PyTorch programs", part.splitlines())


if __name__ == "__main__":
    main()
