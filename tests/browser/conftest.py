"""What tests in a browser share."""

import pytest
from browsers import browser


@pytest.fixture(scope="module")
def new_tab():
    """Open a tab of a browser that all tests of a file share."""
    with browser() as opened:
        yield opened
