"""gt.debug.explain tells what moves and why; gt.debug.strict refuses it."""

from processes import run_on_four_workers, run_python, unsharded_only

pytestmark = unsharded_only


def test_explain_says_what_moves_and_why():
    out = run_on_four_workers("""
register("rows", axis=0)
x = gt.signal.tensor(gt.randn(64, 8), name="rows")
with gt.debug.explain() as explanation:
    x.argmax(0).sum().item()
gather = explanation.moves[0]
assert gather.collective in ("all_gather", "all_to_all") and gather.source.placement == "Shard(0)"
assert explanation.moved_bytes >= gather.bytes > 0 and "argmax" in gather.reason
assert set(explanation.memory) == {0, 1, 2, 3}
gt.debug.explain(lambda y: y + 1, x)
""")
    assert "argmax: int" not in out and "argmax: float32 (64, 8)" in out and "because" in out
    assert "add: float32 (64, 8) Shard(0) on [0, 1, 2, 3]" in out
    assert "memory: worker 0:" in out


def test_one_worker_can_be_explained_too():
    done = run_python(
        "import gt\n"
        "x = gt.ones(3)\n"
        "with gt.debug.explain() as e: (x * 2).sum().item()\n"
        "assert [s.operation for s in e.steps] == ['mul', 'sum'] and not e.moves\n"
        "assert gt.debug.placement(x)[0].workers == [0]\n"
    )
    assert done.returncode == 0, done.stderr


def test_fetches_are_explained_with_their_line():
    run_on_four_workers("""
import sys
register("rows", axis=0)
with gt.signal.context("rows"):
    a = gt.ones(8, 8)
with gt.debug.explain(quiet=True) as explanation:
    here, _ = sys._getframe().f_lineno, a.numpy()
step = explanation.steps[0]
assert step.operation == "fetch" and step.line.endswith(f":{here}"), step
assert [operand.placement for operand in step.operands] == ["Shard(0)"], step
""")


def test_strict_mode_names_the_line():
    run_on_four_workers("""
register("rows", axis=0)
with gt.signal.context("rows"):
    x = gt.randn(64, 8)
with gt.debug.strict(100):
    y = x.sum()  # sums are asked for
    bad = x.argmax(0)
y.item()
try:
    bad.tolist()
except gt.WorkerError as error:
    text = str(error)
assert "argmax" in text and "Shard(0)" in text and "strict" in text and "<string>" in text, text
x.argmax(0).tolist()
""")


def test_strict_composites_fail_alone():
    run_on_four_workers("""
register("rows", axis=0)
with gt.signal.context("rows"):
    x = gt.randn(12, 1000)
with gt.debug.strict(100):
    results = [x.var(0), x.std(0), x.logsumexp(0), x.softmax(0)]
for result in results:
    try:
        result.sum().item()
    except gt.WorkerError as error:
        assert "strict" in str(error)
assert x.sum().isfinite().item()
""")


def test_nested_looks_do_not_end_the_outer_ones():
    run_on_four_workers("""
register("dp", axis=0)
with gt.debug.explain(quiet=True) as outer:
    a = gt.ones(3)
    with gt.debug.explain(quiet=True) as inner:
        b = gt.ones(3)
    c = gt.ones(4)
assert (len(outer.steps), len(inner.steps)) == (3, 1), outer
with gt.signal.context("dp"):
    x = gt.randn(64, 64)
with gt.debug.strict(100):
    with gt.debug.strict(10**9):
        pass
    y = x.argmax(0)
try:
    y.sum().item()
except gt.WorkerError as error:
    assert "strict" in str(error)
else:
    raise AssertionError("strict was off")
for limit in (-1, 1.5):
    try:
        with gt.debug.strict(limit):
            raise AssertionError
    except ValueError as error:
        assert str(limit) in str(error)
""")
