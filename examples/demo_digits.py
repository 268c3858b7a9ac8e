"""What `make demo` runs: train on digits here, then the same on a server with two workers."""

import json
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import train_digits

HERE = Path(__file__).resolve().parent
OUTPUT = Path("demo_out")


@contextmanager
def cluster(workers: int):
    """Run a server and workers as processes of their own; give the address."""
    sys.path.insert(0, str(HERE.parent))
    from simple_launch import start_cluster, stop

    address, processes = start_cluster(workers)
    try:
        yield address
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
    print("1. Training in this process")
    accuracy, here = train_digits.main([])

    print("\n2. The same script against a server and two workers in processes of their own")
    with cluster(2) as address, tempfile.TemporaryDirectory() as folder:
        curve = Path(folder) / "curve.json"
        script = str(HERE / "train_digits.py")
        command = [sys.executable, script, "--connect", address, "--curve", str(curve)]
        subprocess.run(command, check=True, timeout=300)
        there = json.loads(curve.read_text())["loss"]

    difference = max(abs(a - b) for a, b in zip(here, there, strict=True))
    picture = OUTPUT / "digits_loss.png"
    draw({"in this process": here, "server and two workers": there}, picture)
    print(f"\nlargest difference between the two loss curves: {difference:.1e}")
    print(f"the curves: {picture}")
    if accuracy < 0.97:
        print(f"the accuracy is {accuracy:.1%}, expected at least 97 %", file=sys.stderr)
        return 1
    if difference > 1e-6:
        print("the loss curves differ, expected the same", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
