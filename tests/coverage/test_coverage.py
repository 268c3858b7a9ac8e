"""Entries of PyTorch's operator database that have passed still pass."""

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


@pytest.mark.parametrize("options", [["--kinds", "float32"], ["--kinds", "all", "--part"]])
def test_what_passed_still_passes(tmp_path, options):
    """Checks all entries with float32, and a part of the other dtypes and second gradients."""
    written = tmp_path / "results.json"
    subprocess.run([sys.executable, HERE / "run.py", "--json", written, *options], check=True)
    failing = [result for result in json.loads(written.read_text()) if result["reasons"]]
    lost = [
        f"{result['name']}, {result['kind']}: {result['reasons'][0]}"
        for result in failing
        if result["name"] in passing(result["kind"])
    ]
    assert not lost, f"{len(lost)} entries passed before:\n" + "\n".join(lost)


def passing(kind):
    """Return the names of the entries that have passed a kind of check."""
    return (HERE / "passing" / f"{kind}.txt").read_text().split()
