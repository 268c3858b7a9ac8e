"""Sharding from Python: placements of tensors, and the redistributions that they need."""

import pytest
from processes import output_of, run_on_four_workers, run_python, unsharded_only

pytestmark = unsharded_only


def test_tensors_have_the_placement_of_the_scope_that_creates_them():
    output_of("sharding/placements")


def test_configurations_change_at_run_time():
    output_of("sharding/changed_configurations")


def test_a_scope_without_placement_inherits_the_enclosing_one():
    output_of("sharding/scopes_without_placement")


def test_gradients_run_where_the_configuration_says():
    output_of("sharding/backward_signals")


@pytest.mark.parametrize(
    "optimizer", ["SGD(p, lr=0.1)", "SGD(p, lr=0.1, momentum=0.9)", "AdamW(p)"]
)
def test_updates_keep_the_placement_of_their_parameters(optimizer):
    """Replicated parameters stay replicated; strict mode allows the all_reduce of gradients."""
    output_of("sharding/data_parallel_step", optimizer)


def test_slices_move_only_the_rows_that_they_need():
    output_of("sharding/slices")


def test_large_tensors_are_sharded_automatically():
    assert output_of("sharding/automatic", GT_AUTO_SHARD="1") == "(512, 512) 0.0\n"
    assert "Shard(0)" in run_on_four_workers("print(placement(gt.ones(64)))", GT_AUTO_SHARD="100")
    assert "ignored" in run_python("import gt; gt.ones(1).item()", GT_AUTO_SHARD="many").stderr
