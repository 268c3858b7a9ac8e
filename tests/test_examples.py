"""Every example runs and says what it should."""

import subprocess
import sys
from pathlib import Path

import pytest
from processes import embedded_only

ROOT = Path(__file__).resolve().parent.parent
pytestmark = embedded_only


def run(*command: str, cwd=ROOT):
    done = subprocess.run(
        [sys.executable, "-W", "error", *command],
        capture_output=True,
        text=True,
        timeout=110,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("demo.py", ["[6.0, 8.0, 10.0, 12.0]", "[2.0, 4.0, 6.0]"]),
        ("signal_demo.py", ["inside: forward_layer1 / backward_layer1", "signal=forward_layer1"]),
        ("compile_demo.py", ["hot_path is to be compiled: True", "operations:"]),
        ("config_from_python.py", ["batch of 512: workers [0, 1, 2, 3]", "'training'"]),
        ("debug_demo.py", ["matmul", "issued at", "debug_demo.py"]),
    ],
)
def test_example(script, words):
    out = run(f"examples/{script}")
    for word in words:
        assert word in out, out


def test_no_example_is_forgotten():
    tested = {"demo", "signal_demo", "compile_demo", "config_from_python", "debug_demo"}
    tested |= {"train_digits", "demo_digits"}
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == tested


def test_simple_launch():
    out = run("simple_launch.py", "--workers", "2")
    assert "2 worker(s)" in out and "test passed" in out


def test_the_demo(tmp_path):
    out = run(str(ROOT / "examples" / "demo_digits.py"), cwd=tmp_path)
    assert out.count("test accuracy: 9") == 2
    assert (tmp_path / "demo_out" / "digits_loss.png").stat().st_size > 10_000
