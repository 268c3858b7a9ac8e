"""Fixtures of the tests of clusters."""

from cluster_command import clusters  # noqa: F401 - they are used by their names
from ssh_labs import far, hosts  # noqa: F401 - they are used by their names
