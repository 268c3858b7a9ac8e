"""Fixtures for tests of engines, which do not depend on the backend of other tests."""

import os
from pathlib import Path

import pytest
from gt.engines import load

HERE = Path(__file__).parent
PACKAGES = {"numpy": "numpy", "jax": "jax", "pytorch": "torch"}


def pytest_collection_modifyitems(items):
    """Run these tests last: once JAX is imported, it warns about every fork."""
    here = [item for item in items if item.path.parent == HERE]
    items[:] = [item for item in items if item.path.parent != HERE] + here
    if os.environ.get("GT_TEST_SERVER") or os.environ.get("GT_TEST_SHARDED"):
        for item in here:
            item.add_marker(pytest.mark.skip(reason="once is enough: embedded"))


@pytest.fixture(scope="module", params=PACKAGES)
def engine(request):
    """Yield each installed engine; with GT_TEST_ALL all must be installed."""
    if not os.environ.get("GT_TEST_ALL"):
        pytest.importorskip(PACKAGES[request.param], reason=f"{request.param}: make test-all")
    return load(request.param)
