"""Compare the speed of `make build` with that of a wheel, and write a table of docs/building.md.

Rounds alternate between the sides, which run in separate processes; the table has medians, and the
ratio of the build to itself (A/A), which shows the noise. The wheel is the newest one in `dist/`,
or `--wheel`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import zipfile
from pathlib import Path

import run
from sides import Side

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.append(str(ROOT / "tools"))

#: The description of each work, by its name in the runner.
WORKS = {
    "add": "small addition in a chain",
    "item": "`(a + b).sum().item()`",
    "matmul": "product of 1000 x 1000, fetched",
    "mlp": "MLP 784-256-10, batch 64: step",
}
MODELS = {
    "qwen3": "Qwen3, 4 layers, d 256: step, AdamW",
    "generation": "the same: 128 tokens, cache",
    "lstm": "LSTM, 64 x 128 x 256: step, SGD",
}


def in_turn(runners: dict[str, Side], name: str, rounds: int, key: str) -> dict[str, float]:
    """Return the median of each side over alternating rounds."""
    found: dict[str, list[float]] = {side: [] for side in runners}
    for _ in range(rounds):
        for side, runner in runners.items():
            found[side].append(json.loads(runner.ask(name))[key])
    return {side: statistics.median(values) for side, values in found.items()}


def row(text: str, unit: str, median: dict[str, float]) -> str:
    """Return a row of the table."""
    build, again, wheel = (median[side] for side in ("build", "again", "wheel"))
    return (
        f"| {text} | {build:,.2f} {unit} | {wheel:,.2f} {unit} | {build / wheel:.2f} | "
        f"{again / build:.2f} |"
    )


def main() -> None:
    """Measure, print, and write the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--wheel", type=Path, help="the wheel to compare with")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the page to write")
    args = parser.parse_args()
    wheels = sorted((ROOT / "dist").glob("*x86_64.whl"), key=lambda path: path.stat().st_mtime)
    wheel = args.wheel or (wheels[-1] if wheels else None)
    if wheel is None:
        parser.error("there is no wheel in dist/: make wheel, or --wheel FILE")
    lines = ["| work | build | wheel | build / wheel | A/A |", "| --- | --- | --- | --- | --- |"]

    def add(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
        paths = {"build": str(ROOT / "python"), "again": str(ROOT / "python"), "wheel": folder}
        environments = {
            side: {"PYTHONPATH": path, "OMP_NUM_THREADS": "2"} for side, path in paths.items()
        }
        script = str(HERE / "processes" / "side.py")
        for form in ("embedded", "tcp"):
            servers, runners = [], {}
            for side, environment in environments.items():
                address = form
                if form == "tcp":
                    os.environ["PYTHONPATH"] = environment["PYTHONPATH"]
                    address, processes = run.cluster(2)
                    servers += processes
                runners[side] = Side(script, address, "2", environment=environment)
            os.environ.pop("PYTHONPATH", None)
            for name, text in WORKS.items():
                add(row(f"{form}: {text}", "us", in_turn(runners, name, args.rounds, "us")))
            for runner in runners.values():
                runner.stop()
            for process in servers:
                process.terminate()
                process.wait(timeout=20)
        for name, text in MODELS.items():
            script = str(HERE / "processes" / "models.py")
            runners = {
                side: Side(script, "embedded", name, environment=environment)
                for side, environment in environments.items()
            }
            add(row(f"embedded: {text}", "ms", in_turn(runners, "go", args.rounds, "ms")))
            for runner in runners.values():
                runner.stop()
        runners = {
            side: Side(str(HERE / "processes" / "builds.py"), environment=environment)
            for side, environment in environments.items()
        }
        for name in json.loads(runners["build"].ask("names")):
            add(row(f"embedded: {name}", "ms", in_turn(runners, name, args.rounds, "ms")))
        for runner in runners.values():
            runner.stop()
    if args.write:
        from build_report import replace

        page = args.write.read_text()
        args.write.write_text(
            replace(page, "speed", lines, "<!-- {name}: python benches/builds.py -->")
        )


if __name__ == "__main__":
    main()
