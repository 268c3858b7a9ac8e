"""What passes of PyTorch's operator database keeps passing: the number may only rise."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from processes import embedded_only

HERE = Path(__file__).parent
pytestmark = [
    embedded_only,
    pytest.mark.skipif(not os.environ.get("GT_TEST_ALL"), reason="runs with make test-all"),
    pytest.mark.timeout(1800),
]


def test_what_passed_still_passes(tmp_path):
    names = (HERE / "passing.txt").read_text().split()
    written = tmp_path / "results.json"
    subprocess.run([sys.executable, HERE / "run.py", "--json", written], check=True)
    failing = {r["name"]: r["reasons"][0] for r in json.loads(written.read_text()) if r["reasons"]}
    lost = [f"{name}: {failing[name]}" for name in names if name in failing]
    assert not lost, f"{len(lost)} entries passed before:\n" + "\n".join(lost)
