"""The engine on a GPU, beside GT's own, which says what is right.

Without a GPU a stand-in takes its place, so that all but what is marked `gpu_only` runs anywhere.
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
    """Say what the tests run on."""
    if not ON_GPU:
        return "device: NO GPU, a stand-in on the processor"
    import torch

    return f"device: {torch.cuda.get_device_name(0)}, PyTorch {torch.__version__}"


@pytest.fixture(autouse=True, scope="module")
def reference():
    """Compute what is right with GT's own engine."""
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
