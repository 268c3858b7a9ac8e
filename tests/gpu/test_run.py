"""The command for GPU machines, and the benchmarks with tiny sizes."""

import subprocess
import sys
from pathlib import Path

import pytest
from machine import HERE_FIRST
from marks import standin_only

HERE = Path(__file__).parent
RUNNER = HERE.parent.parent / "benches" / "processes" / "gpu.py"


def run(*command: object, given: str = ""):
    full = [sys.executable, *map(str, command)]
    return subprocess.run(
        full, input=given, capture_output=True, text=True, timeout=600, env=HERE_FIRST
    )


@standin_only
def test_without_a_gpu_it_says_so_and_does_nothing():
    done = run(HERE / "run.py")
    assert done.returncode == 0 and done.stdout == ""
    assert "!! NO GPU: nothing was tested or measured. " in done.stderr
    done = run(HERE.parent.parent / "benches" / "gpu.py")
    assert done.returncode == 0 and done.stderr.startswith("NO GPU: nothing was measured")


@pytest.mark.parametrize("work", ["mlp", "transformer", "add", "copy", "decode"])
def test_benchmarks_of_gt_run_in_small(work):
    done = run(RUNNER, "gt", work, "tiny", given="go\n")
    ready, seconds = done.stdout.splitlines()
    assert ready.startswith("ready") and float(seconds) > 0, done.stderr
