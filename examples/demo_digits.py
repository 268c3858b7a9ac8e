"""What `make demo` runs: train on digits here, then the same on a server with two workers."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import train_digits

HERE = Path(__file__).resolve().parent
OUTPUT = Path("demo_out")
LEAST_ACCURACY = 0.97
LARGEST_DIFFERENCE = 1e-6

sys.path.insert(0, str(HERE.parent))
from simple_launch import end_politely, start_cluster, stop  # noqa: E402


def train_on_server(workers: int) -> list[float]:
    """Run the script on a server with workers, all in processes of their own; give its losses."""
    address, processes = start_cluster(workers)
    try:
        with tempfile.TemporaryDirectory() as folder:
            curve = Path(folder) / "curve.json"
            script = str(HERE / "train_digits.py")
            command = [sys.executable, script, "--connect", address, "--curve", str(curve)]
            subprocess.run(command, check=True, timeout=300)
            return json.loads(curve.read_text())["loss"]
    finally:
        stop(processes)


def draw(curves: dict[str, list[float]], path: Path) -> None:
    """Save the loss curves as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5), dpi=130)
    for (name, curve), style in zip(curves.items(), ["-", "o"], strict=True):
        axes.plot(range(1, len(curve) + 1), curve, style, label=name, markersize=4, alpha=0.8)
    axes.set(xlabel="epoch", ylabel="training loss", title="Handwritten digits", yscale="log")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)


def main() -> int:
    """Run the demo; give the exit status."""
    end_politely()
    print("1. Training in this process")
    accuracy, here = train_digits.main([])

    print("\n2. The same script against a server and two workers in processes of their own")
    try:
        there = train_on_server(workers=2)
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(f"the demo failed: {error}", file=sys.stderr)
        return 1

    difference = max(abs(a - b) for a, b in zip(here, there, strict=True))
    picture = OUTPUT / "digits_loss.png"
    draw({"in this process": here, "server and two workers": there}, picture)
    print(f"\nlargest difference between the two loss curves: {difference:.1e}")
    print(f"the curves: {picture}")
    if accuracy < LEAST_ACCURACY:
        print(f"the accuracy is {accuracy:.1%}, expected {LEAST_ACCURACY:.0%}", file=sys.stderr)
        return 1
    # Not a number differs from everything.
    if not difference <= LARGEST_DIFFERENCE:
        print("the loss curves differ, expected the same", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
