"""Fixtures for tests of the PyTorch engine on a GPU, compared with the native engine.

Without a GPU a stand-in on the CPU replaces it, so that all tests not marked `gpu_only` run
anywhere.
"""

import os
from pathlib import Path

import gt
import pytest
from machine import HAS_TORCH, ON_GPU, make_engine

HERE = Path(__file__).parent
ELSEWHERE = ("GT_TEST_SERVER", "GT_TEST_SHARDED")

if not HAS_TORCH and not os.environ.get("GT_TEST_ALL"):
    collect_ignore_glob = ["test_*.py"]  # `make test-all` has PyTorch


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == HERE and any(map(os.environ.get, ELSEWHERE)):
            item.add_marker(pytest.mark.skip(reason="once is enough: embedded"))


def pytest_report_header():
    """Return a line that names the device of the tests."""
    if not ON_GPU:
        return "device: NO GPU, a stand-in on the CPU"
    import torch

    return f"device: {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}"


@pytest.fixture(autouse=True, scope="module")
def reference():
    """Compute the tests' reference results with the native engine."""
    before = os.environ.get("GT_BACKEND")
    os.environ["GT_BACKEND"] = "native"
    with gt.Session(workers=1):
        if before is None:
            del os.environ["GT_BACKEND"]
        else:
            os.environ["GT_BACKEND"] = before
        yield


@pytest.fixture(scope="module")
def engine():
    return make_engine()
