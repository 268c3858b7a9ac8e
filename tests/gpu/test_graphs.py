"""CUDA graphs: runs with other inputs, alternating plans, and code that cannot be captured."""

import numpy as np
import pytest
import torch
from gt.engines.check.plans import Builder, one_step
from gt.engines.check.values import get, put
from gt.engines.engine import Meta
from gt.engines.pytorch import graphs
from machine import ON_GPU, make_engine


def f32(*shape: int) -> Meta:
    return Meta("float32", shape)


def plan_of(width: int):
    """Plan (x @ w + b) * rate, where the rate is a number."""
    builder = Builder(
        np.ones((3, width), "float32"), np.ones((width, 2), "float32"), np.ones(2, "float32"), 0.5
    )
    product = builder.step("matmul", 0, 1, output=f32(3, 2))
    total = builder.step("add", product, 2, output=f32(3, 2))
    return builder.plan(builder.step("mul", total, 3, output=f32(3, 2)))


def draw(width: int, seed: int) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    shapes = ((3, width), (width, 2), (2,))
    return [random.uniform(-1, 1, shape).astype("float32") for shape in shapes]


def run(engine, compiled, values: list[np.ndarray], rate: float):
    """Run on tensors to which no reference remains afterwards."""
    (out,) = compiled([*(put(engine, value) for value in values), rate])
    return out


def want(values: list[np.ndarray], rate: float) -> np.ndarray:
    x, w, b = values
    return (x @ w + b) * np.float32(rate)


def test_replays_take_new_inputs_and_numbers(engine):
    compiled = engine.compile(plan_of(4))
    assert isinstance(compiled._code, graphs.Captured)
    outputs = []
    for round in range(20):
        values, rate = draw(4, round), 0.1 + round
        outputs.append((run(engine, compiled, values, rate), want(values, rate)))
    # Later runs do not change earlier outputs.
    for out, wanted in outputs:
        np.testing.assert_allclose(get(engine, out), wanted, rtol=1e-5, atol=1e-6)


def test_plans_run_in_turn(engine):
    compiled = {width: engine.compile(plan_of(width)) for width in (4, 7)}
    outputs = []
    for round in range(12):
        for width, code in compiled.items():
            values = draw(width, round)
            outputs.append((run(engine, code, values, round), want(values, round)))
    for out, wanted in outputs:
        np.testing.assert_allclose(get(engine, out), wanted, rtol=1e-5, atol=1e-5)


def test_an_output_is_the_next_input(engine):
    builder = Builder(np.zeros(5, "float32"), 1.0)
    plan = builder.plan(builder.step("add", 0, 1, output=f32(5)))
    compiled = engine.compile(plan)
    value = put(engine, np.zeros(5, "float32"))
    for _ in range(30):
        (value,) = compiled([value, 1.0])
    assert get(engine, value).tolist() == [30] * 5


def test_freed_inputs_may_be_written_over(engine):
    """The memory of an input may be reused by other tensors before the graph has run."""
    compiled = engine.compile(plan_of(4))
    values = draw(4, 1)
    outputs = []
    for _ in range(10):
        outputs.append(run(engine, compiled, values, 2.0))
        for value in values:
            put(engine, np.full_like(value, np.nan))
    for out in outputs:
        np.testing.assert_allclose(get(engine, out), want(values, 2.0), rtol=1e-5, atol=1e-6)


def test_what_no_graph_can_have_runs_without():
    """Code that waits for the GPU cannot be captured: it runs uncaptured. Other graphs work."""
    engine = make_engine()
    gpu = engine.hardware

    def waits(inputs):
        (x,) = inputs
        if not ON_GPU and gpu.cuda.counts["captures"]:
            gpu.cuda.counts["captures"] = 0
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        return [x * x.sum().item()]

    code = graphs.captured(gpu, waits, [torch.ones(3, device=engine.device)])
    assert code is waits
    (out,) = code([put(engine, np.array([1.0, 2.0], "float32"))])
    assert get(engine, out).tolist() == [3, 6]
    assert ON_GPU or gpu.cuda.counts["failed captures"] == 1
    (out,) = make_engine().compile(plan_of(2))([*(put(engine, v) for v in draw(2, 3)), 1.0])
    np.testing.assert_allclose(get(engine, out), want(draw(2, 3), 1.0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("length", "worth"), [(1000, True), (10_000_000, False)])
def test_much_to_copy_is_not_worth_it(length, worth):
    x = np.zeros(length, "float32")
    _, plan = one_step("neg", x, output=Meta("float32", (length,)))
    assert graphs.is_worth(plan) == worth
