"""A small part of `make soak`."""

from processes import embedded_only, one_engine_only, unsharded_only
from soak import soak

pytestmark = [embedded_only, unsharded_only, one_engine_only]


def test_nothing_grows_while_a_cluster_is_used():
    assert soak(20, interval=1) == []
