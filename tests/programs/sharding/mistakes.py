"""Make mistakes in configurations and scopes; check the types and texts of the errors."""

import gt
from four_workers import register


def message(make, kind):
    """Return the text of the error that a call raises."""
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
    dict(workers=[]),
    dict(workers=[1, 1]),
    dict(mesh={"a": 2}, axis={"b": 0}),
    dict(mesh={"a": 2}),
    dict(mesh={"a": 2, "b": 2, "c": 1}, axis={"a": 0}),
    dict(mesh={}, axis={}),
    dict(mesh={"a": 0}, axis={"a": 0}),
    dict(mesh={"a": "2"}, axis={"a": 0}),
    dict(mesh=[2, 2]),
    dict(mesh={"a": 2.5}, axis={}),
    dict(mesh={"a": 2}, axis={"a": "0"}),
    dict(axis=True),
    dict(mesh={"a": 2, "b": 2}, axis={"a": 0, "b": 0}),
    dict(replicated="no"),
    dict(workers=[True]),
    dict(workers=[2**40]),
    dict(mesh={"a": 2, "b": 2}, axis={}, workers=[0]),
):
    message(lambda wrong=wrong: register("wrong", **wrong), (ValueError, TypeError))
for wrong in (dict(workers=[-1]), dict(workers="all"), dict(axis={"a": 0})):
    message(lambda wrong=wrong: register("wrong", **wrong), TypeError)
message(lambda: gt.signal.exit("never entered"), RuntimeError)
# The session still computes.
assert gt.ones(3).sum().item() == 3
