"""Measure models beside PyTorch eager, in one run.

Writes the part "Models" of docs/benchmarks.md. Rounds alternate between the sides, each in its own
process; the table has medians over the rounds, and PyTorch against itself (A/A).
"""

import argparse
import json
import statistics
from pathlib import Path

from run import cluster
from sides import Side, in_turn, write_part

HERE = Path(__file__).resolve().parent
THREADS = 2
#: name: (description, {side: goal, the largest ratio to PyTorch's time})
WORKS = {
    "resnet_forward": ("ResNet-18, 64 x 64, batch 16: forward", {"embedded": 1.15}),
    "resnet": ("ResNet-18, 64 x 64, batch 16: training step, SGD", {"embedded": 1.15}),
    "qwen3": ("Qwen3, 4 layers, d 256, T 256, batch 4: step, AdamW", {"embedded": 0.8}),
    "generation": ("the same: 128 tokens, cache, batch 1", {"embedded": 0.5, "tcp": 0.8}),
    "chargpt": ("examples/chargpt.py: step, AdamW", {"embedded": 0.8}),
    "lstm": ("LSTM, 64 x 128 x 256: step, SGD", {"embedded": 1.0}),
    "adamw": ("AdamW, 200 tensors of 64 x 64 (foreach)", {"embedded": 0.5}),
}
SIDES = {"torch": "torch", "again": "torch", "embedded": "embedded", "tcp": None}


def measure(work: str, rounds: int) -> str:
    """Run one work on all sides; return the table's row."""
    address, processes = cluster(THREADS)
    threads = {"OMP_NUM_THREADS": str(THREADS)}
    runners = {
        name: Side(HERE / "processes" / "models.py", side or address, work, environment=threads)
        for name, side in SIDES.items()
    }
    answers = in_turn(runners, rounds)
    results = {name: [json.loads(answer) for answer in found] for name, found in answers.items()}
    for process in processes:
        process.terminate()
        process.wait(timeout=20)

    def median(side: str, what: str) -> float:
        return statistics.median(result[what] for result in results[side])

    text, goals = WORKS[work]
    base = median("torch", "ms")
    cells = [text, f"{base:,.1f} ms", f"{median('again', 'ms') / base:.2f}"]
    for side in ("embedded", "tcp"):
        goal = f" (at most {goals[side]})" if side in goals else ""
        ms = median(side, "ms")
        cells.append(f"{ms:,.1f} ms = **{ms / base:.2f} x**{goal}")
    cells.append(" / ".join(f"{median(side, 'cpu_ms'):,.0f}" for side in ("torch", "embedded")))
    cells.append(" / ".join(f"{median(side, 'memory'):,.0f}" for side in ("torch", "embedded")))
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--write", type=Path, help="the page to write")
    parser.add_argument("--work", choices=WORKS, nargs="+", default=list(WORKS))
    args = parser.parse_args()

    import torch
    import torchvision
    import transformers

    columns = ["work", "PyTorch eager", "A/A", "embedded", "tcp", "CPU, ms", "memory, MiB"]
    lines = [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}"]
    for work in args.work:
        lines.append(measure(work, args.rounds))
        print(lines[-1], flush=True)
    part = f"""PyTorch {torch.__version__}, transformers {transformers.__version__} and torchvision
{torchvision.__version__} beside examples/: {THREADS} threads, medians of {args.rounds} alternating
rounds. Made by `python benches/models.py --write docs/benchmarks.md`. CPU and memory are PyTorch's
and GT's, embedded; memory is the peak of the process beyond its memory without a model.

{chr(10).join(lines)}
"""
    if args.write:
        write_part(args.write, "## Models", part.splitlines())


if __name__ == "__main__":
    main()
