"""Sharding from Python: what users get wrong is told."""

from processes import ON_FOUR_WORKERS, run_on_four_workers, run_python, unsharded_only

pytestmark = unsharded_only


def test_mistakes_are_told():
    run_on_four_workers("""
def message(make, kind):
    try:
        make()
    except kind as error:
        return str(error)
    raise AssertionError("no error")
register("far", axis=0, workers=[0, 7])
with gt.signal.context("far"):
    x = gt.ones(4)
text = message(lambda: x.sum().item(), gt.WorkerError)
assert "'far' names worker 7" in text and "0, 1, 2, 3" in text, text
register("mesh", mesh={"a": 3, "b": 2}, axis={"a": 0})
with gt.signal.context("mesh"):
    x = gt.ones(6)
assert "mesh of 6 workers" in message(x.sum().item, gt.WorkerError)
register("second axis", axis=1)
assert "axis 1" in message(lambda: gt.signal.tensor(gt.ones(3), name="second axis"), IndexError)
for wrong in (
    dict(workers=[]), dict(workers=[1, 1]), dict(mesh={"a": 2}, axis={"b": 0}),
    dict(mesh={"a": 2}), dict(mesh={"a": 2, "b": 2, "c": 1}, axis={"a": 0}), dict(mesh={}, axis={}),
    dict(mesh={"a": 0}, axis={"a": 0}), dict(mesh={"a": "2"}, axis={"a": 0}), dict(mesh=[2, 2]),
    dict(mesh={"a": 2.5}, axis={}), dict(mesh={"a": 2}, axis={"a": "0"}), dict(axis=True),
    dict(mesh={"a": 2, "b": 2}, axis={"a": 0, "b": 0}), dict(replicated="no"),
    dict(workers=[True]), dict(workers=[2**40]), dict(mesh={"a": 2, "b": 2}, axis={}, workers=[0]),
):
    message(lambda: register("wrong", **wrong), (ValueError, TypeError))
for wrong in (dict(workers=[-1]), dict(workers="all"), dict(axis={"a": 0})):
    message(lambda: register("wrong", **wrong), TypeError)
message(lambda: gt.signal.exit("never entered"), RuntimeError)
# The session goes on.
assert gt.ones(3).sum().item() == 3
""")


def test_unknown_signals_are_ignored_reported_or_refused():
    code = "register('known', axis=0)\n"
    code += "with gt.signal.context('knwon'): print(gt.ones(2).tolist())\n"
    assert run_on_four_workers(code) == "[1.0, 1.0]\n"
    told = run_python(ON_FOUR_WORKERS + code * 2, GT_VERBOSE="1")
    assert told.stderr.count("did you mean 'known'?") == 1 and told.returncode == 0
    refused = run_python(ON_FOUR_WORKERS + code, GT_STRICT="1")
    assert refused.returncode == 1 and "did you mean 'known'?" in refused.stderr


def test_backward_signals_must_be_known_when_told_to_be_strict():
    code = "register('known', axis=0)\n"
    code += "gt.register_config('a', SignalConfig(ShardConfig(axis=0), 'knwon'))\n"
    code += "with gt.signal.context('a'): gt.ones(2)\n"
    assert run_on_four_workers(code) == ""
    refused = run_python(ON_FOUR_WORKERS + code, GT_STRICT="1")
    assert refused.returncode == 1 and "did you mean 'known'?" in refused.stderr


def test_a_scope_left_open_is_told_at_the_end():
    done = run_python(ON_FOUR_WORKERS + "gt.signal.enter('open')\nprint(gt.ones(1).item())\n")
    assert done.returncode == 0 and done.stdout == "1.0\n"
    assert "'open' was entered and never left" in done.stderr


def test_an_error_closes_the_scopes_that_it_leaves_open():
    run_on_four_workers("""
try:
    with gt.signal.context("a"):
        gt.signal.enter("b")
        raise KeyError("mine")
except KeyError:
    pass
assert gt.signal.current_signal() is None
try:
    with gt.signal.context("a"):
        gt.signal.enter("b")
except RuntimeError as error:
    assert "'b'" in str(error)
else:
    raise AssertionError("no error")
assert gt.signal.current_signal() is None
""")
