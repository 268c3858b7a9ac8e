"""Notebooks in JupyterLab: each object as HTML, an error with its line, and a live cell."""

import json
import time

import pytest
from browsers import LIMIT, needs_browser
from jupyter_pages import jupyterlab, needs_jupyterlab
from processes import cluster, embedded_only, one_engine_only

pytestmark = [needs_browser, needs_jupyterlab, embedded_only, one_engine_only]

#: The size of the window, in which all of a notebook fits.
WINDOW = {"width": 1100, "height": 2600}

NAME = "<img src=x onerror=alert(1)> $x$"

OBJECTS = (
    "import gt\ngt.gpu_workers(2)\nx = gt.ones(4, 3, requires_grad=True)\nx",
    "gt.status()",
    f"with gt.signal.context({NAME!r}):\n    y = (x * 2).relu().sum()\ngt.debug.get_tape()",
    "with gt.debug.explain():\n    (x @ x.T).sum().item()",
    "with gt.debug.timeline() as timeline:\n    (x @ x.T).sum().item()\ntimeline",
    "# A worker finds out.\nbad = gt.arange(3).gather(0, gt.ones(2, dtype=gt.int64) * 7)",
    "bad.sum().item()",
)

#: Cells that compute beside a live one, until a file exists.
LIVE = (
    "import gt, pathlib\ngt.connect({address!r})\nview = gt.watch(every=0.1)",
    "w = gt.ones(100, 100)\nwhile not pathlib.Path('end').exists():\n    w.sum().item()",
    "view.stop()",
)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A server of JupyterLab that all tests share."""
    with jupyterlab(tmp_path_factory.mktemp("jupyter")) as served:
        yield served


def texts(outputs) -> str:
    """Return what the outputs of a cell show as HTML; nothing of them may be plain text."""
    kinds = outputs.evaluate_all("all => all.map((of) => of.dataset.mimeType)")
    assert kinds and set(kinds) == {"text/html"}, kinds
    return "\n".join(outputs.all_inner_texts())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_object_is_shown_as_html_and_an_error_names_its_line(new_tab, lab, scheme):
    tab = new_tab(viewport=WINDOW, color_scheme=scheme)
    dialogs = []
    tab.page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    lab.write(f"{scheme}.ipynb", *OBJECTS)
    notebook = lab.open(tab, f"{scheme}.ipynb")

    tensor = notebook.run(1)
    assert "float32 tensor, 4 × 3 = 12 elements" in texts(tensor)
    assert tensor.locator("pre").count() == 1
    status = notebook.run(2)
    assert "auto_worker_1" in texts(status) and f"{scheme}.ipynb" in texts(status)
    assert status.locator("table th").count() > 4
    tape = notebook.run(3)
    assert "relu" in texts(tape) and NAME in texts(tape)
    assert tape.locator("img, .MathJax").count() == 0
    plan = notebook.run(4)
    assert "matmul" in texts(plan) and "Cell In[4]:2" in texts(plan), texts(plan)
    timeline = notebook.run(5)
    assert "auto_worker_0" in timeline.locator("svg").text_content()
    box, cell = timeline.locator("svg").bounding_box(), notebook.cell(5).bounding_box()
    assert 300 < box["width"] <= cell["width"], (box, cell)
    assert notebook.run(6).count() == 0
    error = notebook.run(7)
    kinds = error.evaluate_all("all => all.map((of) => of.dataset.mimeType)")
    assert kinds == ["application/vnd.jupyter.stderr"], kinds
    said = error.first.inner_text()
    assert "WorkerIndexError" in said and "Cell In[6], line 2" in said, said
    tab.shot(f"jupyterlab-{scheme}")

    # It is saved with what it shows, and shows it when it is opened again.
    notebook.save()
    written = json.loads((lab.folder / f"{scheme}.ipynb").read_text())
    assert [bool(cell["outputs"]) for cell in written["cells"]] == [True] * 5 + [False, True]
    again = lab.open(new_tab(viewport=WINDOW), f"{scheme}.ipynb")
    assert "auto_worker_1" in texts(again.outputs(2))
    assert again.outputs(5).locator("svg").count() == 1
    assert dialogs == []


def test_a_live_cell_changes_while_another_cell_computes(new_tab, lab):
    with cluster(2) as (address, _):
        tab = new_tab(viewport=WINDOW)
        lab.write("live.ipynb", *(cell.format(address=address) for cell in LIVE))
        notebook = lab.open(tab, "live.ipynb")
        live = notebook.run(1)
        assert f"the server at {address}" in texts(live) and "(live)" in texts(live)
        assert {"w0", "w1"} <= set(live.locator("td").all_inner_texts())
        notebook.start(2)
        seen: set[str] = set()
        until = time.monotonic() + LIMIT
        while len(seen) < 4 or notebook.prompt(2) != "[*]:":
            assert time.monotonic() < until, seen
            seen.add(live.locator("tbody").last.inner_text())
            tab.page.wait_for_timeout(50)
        tab.shot("jupyterlab-live")
        (lab.folder / "end").touch()
        notebook.wait_for_end_of(2)
        notebook.run(3)
        tab.wait_until("/\\(ended: stopped\\)/.test(document.body.innerText)")
        ended = texts(live)
        assert "(live)" not in ended
        tab.page.wait_for_timeout(500)
        assert texts(live) == ended, "nothing updates it any more"
