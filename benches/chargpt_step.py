"""Measure a training step of examples/chargpt.py beside the same source in PyTorch eager.

Each side runs in a process of its own, in rounds that alternate; the table has medians of the time
that passed and of the processor time that was used, of all threads. What GT's worker ran most
follows. `chargpt_step.py SIDE` is one of the processes: it reads the name of a work a line and
answers with milliseconds, passed and used.

PyTorch's threads burn time while they wait for one another: where others use the machine, compare
one thread of each.

usage: chargpt_step.py [ROUNDS [THREADS]]
"""

import json
import os
import statistics
import sys
import time
from pathlib import Path
from types import ModuleType

from sides import Side

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "chargpt.py"
SIZES = {"context": 64, "width": 96, "layers": 3, "heads": 4, "dropout": 0.1}
BATCH, STEPS = 32, 20
WORKS = {
    "step": "training step, float32",
    "bfloat16": "training step, bfloat16",
    "forward": "forward pass without gradients",
    "write": "3 texts, for each character",
}


def example(side: str) -> ModuleType:
    """Give the example as a module, with PyTorch in GT's place for that side."""
    source = EXAMPLE.read_text()
    if side == "torch":
        source = source.replace("import gt\n", "import torch as gt\n").replace(
            "from gt", "from torch"
        )
    module = ModuleType("chargpt")
    module.__file__ = str(EXAMPLE)
    exec(compile(source, str(EXAMPLE), "exec"), module.__dict__)
    return module


def play(side: str) -> None:
    """Be one side."""
    chargpt = example(side)
    lib, nn = chargpt.gt, chargpt.nn
    if side == "torch":
        lib.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    lib.manual_seed(0)
    text = chargpt.Text(chargpt.SONNETS, SIZES["context"])
    model = chargpt.GPT(len(text.alphabet), *SIZES.values())
    optimizer = lib.optim.AdamW(model.parameters(), lr=1e-3)

    def batch():
        return text.windows(lib.randint(0, text.trained - SIZES["context"], (BATCH,)))

    def step(precision: str) -> None:
        for _ in range(STEPS):
            loss = chargpt.loss_of(model, *batch(), precision)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        loss.item()

    def forward() -> None:
        with lib.no_grad():
            losses = [chargpt.loss_of(model, *batch(), "float32") for _ in range(STEPS)]
        lib.stack(losses).sum().item()

    works = {
        "step": lambda: step("float32"),
        "bfloat16": lambda: step("bfloat16"),
        "forward": forward,
        "write": lambda: chargpt.write(model, text, 3, STEPS),
    }
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() == "stats":
            print(json.dumps(lib.debug.get_worker_stats()), flush=True)
            continue
        begun, used = time.perf_counter(), time.process_time()
        works[line.strip()]()
        passed, used = time.perf_counter() - begun, time.process_time() - used
        print(json.dumps([1e3 * passed / STEPS, 1e3 * used / STEPS]), flush=True)


def main() -> None:
    """Print the table, and what the worker ran."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    threads = sys.argv[2] if len(sys.argv) > 2 else "2"
    environment = {"OMP_NUM_THREADS": threads}
    sides = {name: Side(__file__, name, environment=environment) for name in ("torch", "gt")}
    print(f"{threads} threads, load {os.getloadavg()[0]:.1f}, medians of {rounds} rounds, in ms\n")
    print("| work | PyTorch eager | GT | ratio | PyTorch, used | GT, used | ratio |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for work, told in WORKS.items():
        taken: dict[str, list] = {name: [] for name in sides}
        for _ in range(rounds + 1):
            for name, side in sides.items():
                taken[name].append(json.loads(side.ask(work)))
        # The first round warms up.
        torch, gt = (
            [statistics.median(column) for column in zip(*taken[name][1:], strict=True)]
            for name in sides
        )
        cells = [f"{t:.1f} | {g:.1f} | {g / t:.2f} x" for t, g in zip(torch, gt, strict=True)]
        print(f"| {told} | {' | '.join(cells)} |", flush=True)
    (stats,) = json.loads(sides["gt"].ask("stats")).values()
    hot = stats["hotpath"]
    print(f"\nhot: {hot['hot_instructions']} of {hot['total_instructions']} operations")
    for sequence in hot["top_sequences"]:
        took = 1e3 * sequence["seconds"] / sequence["repetitions"]
        print(f"{took:7.1f} ms x {sequence['repetitions']}: {sequence['operations']}")
    for side in sides.values():
        side.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] in ("torch", "gt"):
        play(sys.argv[1])
    else:
        main()
