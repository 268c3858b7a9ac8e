"""CUDA graphs, with a stand-in for what only a GPU has."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from gt.engines.check.plans import one_step
from gt.engines.engine import Meta


@pytest.fixture
def graphs():
    pytest.importorskip("torch", reason="pytorch: make test-all")
    from gt.engines.pytorch import graphs

    return graphs


def test_inputs_are_copied_in_and_outputs_out(graphs, monkeypatch):
    import torch

    place = torch.zeros(2)

    def code(inputs):
        """Compute where the last result is, as a graph does."""
        return [torch.add(*inputs, out=place)]

    stream = SimpleNamespace(wait_stream=lambda other: None)
    fake = {
        "Stream": lambda: stream,
        "current_stream": lambda: stream,
        "stream": lambda stream: nullcontext(),
        "graph": lambda graph, capture_error_mode: nullcontext(),
        "CUDAGraph": lambda: SimpleNamespace(replay=lambda: code(memory)),
    }
    for name, function in fake.items():
        monkeypatch.setattr(torch.cuda, name, function)
    memory = [torch.zeros(2), torch.zeros(2)]
    run = graphs.Captured(code, memory)
    one, two = torch.ones(2), torch.full((2,), 2.0)
    (first,) = run([one, two])
    (second,) = run([two, two])
    assert (first.tolist(), second.tolist()) == ([3, 3], [4, 4])
    assert (one.tolist(), two.tolist()) == ([1, 1], [2, 2])


@pytest.mark.parametrize(("length", "worth"), [(1000, True), (10_000_000, False)])
def test_much_to_copy_is_not_worth_it(graphs, length, worth):
    x = np.zeros(length, "float32")
    _, plan = one_step("neg", x, output=Meta("float32", (length,)))
    assert graphs.is_worth(plan) == worth
