"""A notebook in a kernel of its own, as Jupyter runs it."""

import json
import os

import pytest
from markup import read, texts_of
from processes import cluster, run_program

pytest.importorskip("ipykernel", reason="ipykernel: make test-neighbours")
pytest.importorskip("nbclient", reason="nbclient: make test-neighbours")

SLEEP = "import time; time.sleep(1)"


def run(folder, *cells: str) -> list[list[dict]]:
    """Return the outputs of each cell of a notebook."""
    done = run_program("notebooks/run", folder / "run.ipynb", *cells, timeout=110)
    assert done.returncode == 0, done.stderr
    outputs = json.loads(done.stdout)
    errors = [each for cell in outputs for each in cell if each["output_type"] == "error"]
    assert not errors, errors
    return outputs


def html_of(outputs: list[dict]) -> str:
    """Return the HTML of the one output of a cell."""
    (output,) = outputs
    return "".join(output["data"]["text/html"])


def test_each_object_and_a_live_cell(tmp_path):
    outputs = run(
        tmp_path,
        "import gt\nx = gt.ones(4, 3, requires_grad=True)\nx",
        "gt.status()",
        "y = (x * 2).relu().sum()\ngt.debug.get_tape()",
        "with gt.debug.explain():\n    (x @ x.T).sum().item()",
        "with gt.debug.timeline() as timeline:\n    (x @ x.T).sum().item()\ntimeline",
        "gt.ones(3)[gt.tensor([5], dtype='int64')]",
        "view = gt.watch(every=0.1)\nview",
        SLEEP,
        "view.stop()\nview",
    )
    tensor, status, tape, plan, timeline, error, live, _, stopped = outputs
    assert "float32 tensor, 4 × 3 = 12 elements" in texts_of(html_of(tensor))[0]
    assert "auto_worker_0" in texts_of(html_of(status))
    assert "relu" in texts_of(html_of(tape)) and "matmul" in texts_of(html_of(plan))
    assert "svg" in read(html_of(timeline)).seen
    assert "Cell In[6], line 1" in texts_of(html_of(error))[1]
    heading = texts_of(html_of(live))[0]
    assert "(ended: stopped)" in heading and "1 of 1 sessions is yours" in heading
    # Displayed in one more cell, it is one live cell in two places.
    assert html_of(stopped) == html_of(live)


def test_a_live_cell_of_a_server(tmp_path):
    with cluster(1) as (address, _):
        (_, live, _) = run(
            tmp_path,
            f"import gt\ngt.connect('{address}')\nx = gt.ones(3) + 1",
            "gt.watch(every=0.1);",
            SLEEP,
        )
    texts = texts_of(html_of(live))
    assert texts[0].startswith(f"the server at {address}") and "w0" in texts


def test_a_kernel_ends_while_a_cell_is_live(tmp_path):
    _, printed = run(tmp_path, "import gt\nview = gt.watch(every=0.1)", "import os\nos.getpid()")
    kernel = int(printed[0]["data"]["text/plain"])
    with pytest.raises(ProcessLookupError):
        os.kill(kernel, 0)
