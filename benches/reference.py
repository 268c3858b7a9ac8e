"""Time the guard's loops beside a fixed version of GT, and beside PyTorch, in one run.

Regressions of 3 % between consecutive versions are lost in the noise, so the base of comparison is
always the same version: commit 136336f. `--build FOLDER` checks it out and builds it there, as
wheels were built then (link-time optimization of everything: 10 to 20 minutes). Rounds alternate
between the sides; the table has medians.

    python benches/reference.py --build /tmp/reference
    python benches/reference.py --base /tmp/reference/bin/python --write docs/benchmarks.md
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path

from sharding import cluster
from sides import Side, write_part

HERE = Path(__file__).resolve().parent
COMMIT = "136336f"
HEADING = "## Beside a fixed version"

#: loop: (the number of uses in one round, the description of one use)
ROWS = {
    "addition_1000": (1000, "small addition, in a chain of 1,000"),
    "round_trip": (1, "`(a + b).sum().item()`"),
    "sum_item": (1, "`a.sum().item()`"),
    "item": (1, "`x.item()` of a value that is known"),
    "upload": (1, "`tensor([1.0, 2.0, 3.0]).sum().item()`"),
    "fetch_4_mb": (1, "`(a + b).numpy()` of 1,000,000"),
    "training_20": (20, "training step of a small network, the loss fetched after 20"),
    "training_item": (1, "training step, the loss fetched after each"),
    "backward": (1, "loss, gradients, and one of them fetched"),
    "layers": (1, "layer_norm, softmax, and one value fetched"),
    "generation": (12, "token with a growing cache, fetched"),
}

#: Loops that are also run on a server with one worker.
OVER_TCP = ("addition_1000", "round_trip", "training_20")


def build(folder: Path) -> None:
    """Check out the fixed version, and build it into an environment in a folder."""
    source = folder / "source"
    subprocess.run(["git", "worktree", "add", "--force", source, COMMIT], cwd=HERE, check=True)
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "maturin", "numpy"], check=True)
    environment = {**os.environ, "VIRTUAL_ENV": str(folder)}
    command: list[str | Path] = [folder / "bin" / "maturin", "develop", "--release"]
    subprocess.run(command, cwd=source, env=environment, check=True)
    print(f"built: {python}")


def measure(base: str | None, rounds: int) -> list[str]:
    """Run all rounds; return the table."""
    pythons = {"this": sys.executable} | ({"fixed": base} if base else {})
    runner, processes = str(HERE / "processes" / "guard.py"), []
    sides = {"PyTorch": Side(runner, "pytorch"), "again": Side(runner, "pytorch")}
    for name, python in pythons.items():
        address, own = cluster(1, python)
        processes += own
        sides[name] = Side(runner, "embedded", python=python)
        sides[f"{name}, tcp"] = Side(runner, address, python=python)
    times: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds + 1):
        for loop in ROWS:
            for name, side in sides.items():
                if not name.endswith("tcp") or loop in OVER_TCP:
                    answer = side.ask(loop).strip()
                    times.setdefault((loop, name), []).append(float(answer or "nan"))
    for side in sides.values():
        side.stop()
    for process in processes:
        process.terminate()
        process.wait(timeout=30)
    titles = ["this", "fixed", "this, tcp", "fixed, tcp"]
    titles = [title for title in titles if title in sides]
    words = {"this": "this version", "fixed": COMMIT}
    head = [", ".join(words.get(part, part) for part in title.split(", ")) for title in titles]
    lines = [f"| work | PyTorch | A/A | {' | '.join(head)} |"]
    lines.append("| --- | --- | --- |" + " --- |" * len(titles))
    for loop, (uses, what) in ROWS.items():
        # The first round warms up.
        middle = {
            name: statistics.median(times[loop, name][1:]) / uses
            for name in sides
            if (loop, name) in times
        }
        torch = middle["PyTorch"]
        cells = [f"{torch:,.2f} us", f"{middle['again'] / torch:.2f}"]
        for title in titles:
            known = middle.get(title, float("nan"))
            cells.append("" if known != known else f"{known:,.2f} us = {known / torch:.2f} x")
        lines.append(f"| {what} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Build the fixed version, or measure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--build", type=Path, metavar="FOLDER")
    parser.add_argument("--base", help="the interpreter of the fixed version")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--write", type=Path, help="the page to write a part of")
    args = parser.parse_args()
    if args.build:
        return build(args.build.resolve())
    lines = measure(args.base, args.rounds)
    print("\n".join(lines))
    if args.write:
        write_part(args.write, HEADING, [*lines, ""])


if __name__ == "__main__":
    main()
