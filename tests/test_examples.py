"""Every example runs and prints what it should."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import HONOUR_CTRL_C, embedded_only, linux_only

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
        ("config_from_python.py", ["the same as on one worker", "MB in", "'training'"]),
        ("debug_demo.py", ["matmul", "issued at", "debug_demo.py"]),
        ("data_parallel.py", ["on 4 workers", "the same as on one worker", "MB in"]),
        ("tensor_parallel.py", ["on 2 workers", "the same as on one worker", "MB in"]),
        ("pipeline.py", ["on 8 workers", "the same as on one worker", "MB in"]),
        ("hybrid.py", ["on 2 x 2 workers", "the same as on one worker", "MB in"]),
    ],
)
def test_example(script, words):
    out = run(f"examples/{script}")
    for word in words:
        assert word in out, out


def test_every_example_has_a_test():
    tested = {"demo", "signal_demo", "compile_demo", "config_from_python", "debug_demo"}
    tested |= {"data_parallel", "tensor_parallel", "pipeline", "hybrid", "sharding"}
    tested |= {"train_digits", "chargpt", "shared_model"}
    # In tests/models/test_techniques.py:
    tested |= {"lora", "steering", "distillation", "ema", "accumulation"}
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == tested


def test_ten_users_of_a_published_model_compute_what_each_computes_alone():
    out = run("examples/shared_model.py", "--training", "10", "--steps", "20")
    assert out.startswith("poet@1: 112,384 numbers"), out
    rows = out.splitlines()[2:]
    assert len(rows) == 10 and all(row.endswith("yes") for row in rows), out


def test_the_readme_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    programs = [block for block in blocks if block.startswith("import gt")]
    assert len(programs) == 2
    for program in programs:
        assert run("-c", program)


def test_training_saves_its_curve(tmp_path):
    curve = tmp_path / "curve.json"
    out = run("examples/train_digits.py", "--epochs", "2", "--curve", str(curve), "--quiet")
    saved = json.loads(curve.read_text())
    first, second = saved["loss"]
    assert second < first and saved["accuracy"] > 0.8
    assert out.startswith("test accuracy: ")


def test_simple_launch():
    out = run("simple_launch.py", "--workers", "2")
    assert "2 worker(s)" in out and "test passed" in out


@linux_only
@pytest.mark.parametrize(
    ("ending", "status"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)], ids=["Ctrl-C", "kill"]
)
def test_the_launcher_stops_the_processes_that_it_started(ending, status):
    code = HONOUR_CTRL_C + "import simple_launch, sys\nsys.exit(simple_launch.main(['--no-test']))"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as launcher:
        assert "1 worker(s)" in launcher.stdout.readline()
        assert "gt.connect" in launcher.stdout.readline()
        children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children")
        pids = children.read_text().split()
        assert len(pids) == 2
        launcher.send_signal(ending)
        launcher.communicate(timeout=60)
    assert launcher.returncode == status
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
