"""Programs that once had other results when they were sharded."""

import pytest
from processes import output_of, unsharded_only

pytestmark = unsharded_only

#: The functions of tests/programs/sharding/regressions.py.
REGRESSIONS = [
    "bias_on_a_mesh",
    "partial_and_sharded",
    "one_worker",
    "additions_to_partial_sums",
    "softmax_of_float16",
    "sums_of_integers",
    "infinite_quotients",
]


@pytest.mark.parametrize("name", REGRESSIONS)
def test_results_do_not_depend_on_sharding(name):
    expected = output_of("sharding/regressions", name, "unsharded")
    sharded = output_of("sharding/regressions", name, "sharded")
    for one, other in zip(expected.split(), sharded.split(), strict=True):
        assert float(one) == pytest.approx(float(other), rel=1e-3, abs=1e-6, nan_ok=True), sharded
