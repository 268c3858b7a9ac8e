"""Fixtures for all tests.

The whole suite runs embedded, or, with GT_TEST_SERVER=host:port, on that server.
"""

import os

import gt
import pytest

SERVER = os.environ.get("GT_TEST_SERVER")


@pytest.fixture(scope="session", autouse=True)
def connection():
    """Connect, if a server is named."""
    if SERVER:
        gt.connect(SERVER)
    yield


@pytest.fixture(autouse=True)
def seed():
    """Give every test the same random numbers."""
    gt.manual_seed(0)
