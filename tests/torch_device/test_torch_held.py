"""What a program with PyTorch's device holds, as the web page shows it."""

import json
import time

import pytest
from processes import embedded_only, one_engine_only, program
from web_pages import LIMIT, gt_web

pytest.importorskip("torch", reason="PyTorch is not installed: make test-all")
pytest.importorskip("gt.torch")


@embedded_only
@one_engine_only
def test_tensors_of_the_device_have_their_variables():
    with program(name="web/trains_torch") as process:
        with gt_web("--pid", str(process.pid)) as (page, _):
            until = time.monotonic() + LIMIT
            held = None
            while held is None:
                held = json.loads(page.read("/sessions/1"))["held"]
                assert time.monotonic() < until, "the program has listed nothing"
                time.sleep(0.2)
    shapes = {of["variable"]: of["shape"] for of in held["largest"]}
    assert shapes["kept[0]"] == [300, 300]
    assert shapes["model.weight"] == [8, 16]
    assert shapes["optimizer.state[model.weight]['exp_avg']"] == [8, 16]
