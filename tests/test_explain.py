"""`gt.debug.explain` lists redistributions and their reasons; `gt.debug.strict` refuses them."""

from processes import output_of, run_python, unsharded_only

pytestmark = unsharded_only


def test_explain_lists_redistributions_with_their_reasons():
    out = output_of("sharding/explain_redistribution")
    assert "argmax: int" not in out and "argmax: float32 (64, 8)" in out and "because" in out
    assert "add: float32 (64, 8) Shard(0) on [0, 1, 2, 3]" in out
    assert "memory: worker 0:" in out


def test_explain_works_on_one_worker():
    done = run_python(
        "import gt\n"
        "x = gt.ones(3)\n"
        "with gt.debug.explain() as e: (x * 2).sum().item()\n"
        "assert [s.operation for s in e.steps] == ['mul', 'sum'] and not e.moves\n"
        "assert gt.debug.placement(x)[0].workers == [0]\n"
    )
    assert done.returncode == 0, done.stderr


def test_fetches_are_explained_with_their_line():
    output_of("sharding/explain_fetch")


def test_strict_mode_names_the_line():
    output_of("sharding/strict")


def test_strict_composites_fail_without_affecting_their_operand():
    output_of("sharding/strict_composites")


def test_nested_debug_blocks_do_not_end_the_outer_ones():
    output_of("sharding/nested_debug_blocks")
