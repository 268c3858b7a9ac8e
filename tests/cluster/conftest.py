"""Fixtures of the tests of clusters."""

from ssh_labs import far, hosts  # noqa: F401 - they are used by their names
