"""What IPython shows of GT's objects: HTML in notebooks, text on terminals."""

import json

import gt
import pytest
from markup import read, texts_of
from processes import output_of

pytest.importorskip("IPython", reason="IPython: make test-neighbours")

BAD = "gt.ones(3)[gt.tensor([5], dtype='int64')]"
STATUS = "gt.ones(2).sum().item()\ngt.status()"


def run(where: str, *cells: str) -> list[dict]:
    """Return what each cell shows."""
    return json.loads(output_of("notebooks/shell", where, "import gt", *cells))[1:]


def shown(result: dict) -> dict[str, str]:
    """Return the one bundle that a cell shows."""
    bundles = [data for data, _ in result["displayed"]] + [result["formats"]]
    (bundle,) = filter(None, bundles)
    assert set(bundle) == {"text/plain", "text/html"} and result["error"] is None, result
    return bundle


def test_objects_are_html_and_text():
    tensor, status, tape, plan, quiet = map(
        shown,
        run(
            "notebook",
            "gt.ones(2, 2)",
            STATUS,
            "y = gt.ones(2, requires_grad=True).exp()\ngt.debug.get_tape()",
            "with gt.debug.explain():\n    (gt.ones(2) * 3).sum().item()",
            "gt.debug.explain(lambda: (gt.ones(2) * 3).sum().item(), quiet=True)",
        ),
    )
    assert tensor["text/plain"] == repr(gt.ones(2, 2))
    assert texts_of(tensor["text/html"])[1] == tensor["text/plain"]
    assert "auto_worker_0" in texts_of(status["text/html"])
    assert status["text/plain"].strip().startswith("this process")
    assert "exp" in texts_of(tape["text/html"]) and tape["text/plain"].startswith("[{'id':")
    for explanation in (plan, quiet):
        assert "mul" in texts_of(explanation["text/html"])
    assert "Cell In[5]" in plan["text/plain"] and "mul: " in plan["text/plain"]


def test_an_error_is_shown_once_with_its_line():
    (result,) = run("notebook", BAD)
    bundle = shown(result)
    for text in (bundle["text/plain"], texts_of(bundle["text/html"])[1]):
        assert "index 5 is not in [-3, 3)" in text and "Cell In[2], line 1" in text
    assert "Traceback" not in result["out"]
    # A terminal shows the traceback.
    (result,) = run("terminal", BAD)
    assert result["out"].count("Traceback") == 1 and "Cell In[2], line 1" in result["out"]


def test_a_timeline_is_a_picture():
    cell = "with gt.debug.timeline() as timeline:\n    gt.ones(9, 9).sum().item()\ntimeline"
    bundle = shown(run("notebook", cell)[0])
    assert "svg" in read(bundle["text/html"]).seen
    assert "events on 3 lanes" in bundle["text/plain"]


def test_a_live_cell_is_updated():
    made, last = run(
        "notebook", "view = gt.watch(every=0.1, seconds=0.4)\nview", "view._thread.join(60)"
    )
    ((first, is_update),) = made["displayed"][:1]
    assert not is_update and "(live)" in first["text/plain"]
    assert "auto_worker_0" in texts_of(first["text/html"])
    updates = [*made["displayed"][1:], *last["displayed"]]
    assert len(updates) >= 2 and all(is_update for _, is_update in updates)
    assert "(ended: its time is over)" in updates[-1][0]["text/plain"]


def test_a_cell_that_runs_again_ends_its_live_cell():
    cell = "view = gt.watch(every=0.1)"
    *_, ended = run("notebook", cell, "first = view", cell, "(first, view)\n")
    assert ended["out"].endswith("(<gt.Watch: ended, its cell runs again>, <gt.Watch: live>)\n")


def test_a_terminal_shows_text():
    tensor, status, plan, watched = run(
        "terminal",
        "gt.ones(2)",
        STATUS,
        "with gt.debug.explain():\n    gt.ones(2).sum().item()",
        "gt.watch(every=0.1, seconds=0.2)",
    )
    assert tensor["out"] == "Out[2]: tensor([1., 1.], dtype=float32)\n"
    assert "auto_worker_0" in status["out"] and "sum: " in plan["out"]
    assert watched["out"].count("1 of 1 sessions is yours") >= 2
    for result in (tensor, status, plan, watched):
        assert "<" not in result["out"].replace("<gt.Watch", ""), result
